"""Half of a medium, for prompts that would not fit: half the area of an image, half the frames of a video."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import Image

from pipeline.identity import pixels_uuid
from pipeline.models.packing import LoadedMedia

LEAST_SIDE = 28
"""Pixels; a smaller picture is one token of most models, and cannot become fewer."""


def halved(media: LoadedMedia) -> LoadedMedia | None:
    """The medium with half of its pixels and a UUID of its own; None if it is as small as it can be."""
    uuid = pixels_uuid(media.uuid, {"halved": True})
    if media.kind == "video" and len(media.pixels) > 2:
        metadata = media.metadata
        if metadata is not None:
            metadata = {**metadata, "frames_indices": list(metadata["frames_indices"])[::2]}
        return replace(media, uuid=uuid, pixels=np.ascontiguousarray(media.pixels[::2]), metadata=metadata)
    frames = media.pixels if media.kind == "video" else media.pixels[None]
    height, width = (round(side / 2**0.5) for side in frames.shape[1:3])
    if min(height, width) < LEAST_SIDE:
        return None
    pictures = (Image.fromarray(frame) for frame in frames)
    small = [np.asarray(one.resize((width, height), Image.Resampling.BICUBIC)) for one in pictures]
    return replace(media, uuid=uuid, pixels=np.stack(small) if media.kind == "video" else small[0])
