"""One vLLM request: prompt, media and their UUIDs, of which each must have its counterpart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.models.picture import PixelPicture
from pipeline.models.prompt import PromptBuilder
from pipeline.models.spec import Kind, ModelSpec


@dataclass(frozen=True)
class LoadedMedia:
    """One image or video as a model takes it.

    Attributes:
        uuid: the identity of exactly these pixels (`identity.pixels_uuid`).
        pixels: uint8, (height, width, 3) for an image, (frames, height, width, 3) for a video.
        metadata: of a video: fps, duration (s), total_num_frames, frames_indices, video_backend,
            do_sample_frames.
        text: of a document's page: what it says, where it was asked for.
        recovered: the file is damaged, and taken in spite of it (`media.damaged=recover`).
    """

    kind: Kind
    uuid: str
    pixels: npt.NDArray[np.uint8]
    metadata: dict[str, Any] | None = None
    text: str = ""
    recovered: bool = False


def pack(builder: PromptBuilder, question: str, media: Sequence[LoadedMedia], limit: int) -> dict[str, Any]:
    """A request as vLLM takes it: `prompt`, `multi_modal_data`, `multi_modal_uuids`.

    Lists stand for each modality even where there is one: vLLM drops a scalar that is None in silence.

    Raises:
        ItemError: more media than `limit`, a modality that the model lacks, or a prompt whose
            placeholders are not exactly the media.
    """
    by_kind: dict[Kind, list[LoadedMedia]] = {}
    for one in media:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, found in by_kind.items():
        most, why = _most(builder.spec, kind, limit)
        if len(found) > most:
            raise ItemError(Code.TOO_MANY_MEDIA, f"the item has {len(found)} {kind}s, at most {most}{why}")
    prompt = builder.build(question, {kind: len(found) for kind, found in by_kind.items()})
    data: dict[str, list[Any]] = {}
    uuids: dict[str, list[str]] = {}
    for kind in builder.spec.media.keys() & by_kind.keys():
        modality = builder.spec.modality(kind)
        data.setdefault(modality, []).extend(_as_taken(one, builder.spec) for one in by_kind[kind])
        uuids.setdefault(modality, []).extend(one.uuid for one in by_kind[kind])
    return {"prompt": prompt, "multi_modal_data": data, "multi_modal_uuids": uuids}


def _most(spec: ModelSpec, kind: Kind, limit: int) -> tuple[int, str]:
    if kind == "video":
        return 1, ""
    most = spec.media[kind].most if kind in spec.media else None
    return (most, " (the model takes no more)") if most and most < limit else (limit, " (media.max_per_item)")


def _as_taken(media: LoadedMedia, spec: ModelSpec) -> Any:
    if media.kind == "image":
        picture = PixelPicture(media.pixels)
        if spec.modality("image") == "vision_chunk":
            return {"type": "image", "image": picture, "uuid": media.uuid}
        return picture
    return (media.pixels, media.metadata) if spec.media["video"].needs_metadata else media.pixels
