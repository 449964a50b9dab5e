"""From a file's bytes to what a model takes, with the identity of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.config import MediaConfig
from pipeline.identity import media_uuid, pixels_uuid
from pipeline.media.image import decode_image
from pipeline.media.isolated import Decoder, Limits, Pixels, decode_isolated
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import FrameSampling, decode_video
from pipeline.models.packing import LoadedMedia
from pipeline.models.spec import Kind, ModelSpec

DEFAULT_FRAMES = 16
# Always part of a recipe, set or not.
_FIRST = ("num_frames", "fps", "max_frames")


@dataclass(frozen=True)
class MediaLoader:
    """Decodes media for one model under one configuration.

    `image`, `video`, `sampling` and `backend` are all that changes the pixels, so they belong to the recipe and
    to the identity of the pixels. `max_file_pixels` and `limits` only refuse, and `recover` only accepts: a
    file that is whole has the same pixels with and without it.
    Without `limits` decoding happens in this process, for tests and measurements: a damaged file can then take
    the process with it.
    """

    image: PixelBudget
    video: PixelBudget
    sampling: FrameSampling
    max_file_pixels: int
    limits: Limits | None = None
    backend: Literal["pyav", "decord"] = "pyav"
    recover: bool = False

    @classmethod
    def of(cls, config: MediaConfig, spec: ModelSpec) -> MediaLoader:
        """The loader for a run: the configuration's limits where it sets them, else the model's."""
        video = config.video
        bounded = video.fps is not None or video.keyframes
        sampling = FrameSampling(
            num_frames=None if bounded else video.num_frames or DEFAULT_FRAMES,
            fps=video.fps,
            max_frames=video.max_frames if bounded else None,
            keyframes=video.keyframes,
            start=video.start,
            end=video.end,
        )
        return cls(
            image=_budget(spec, "image", config.max_pixels),
            video=_budget(spec, "video", video.max_pixels),
            sampling=sampling,
            max_file_pixels=config.max_file_pixels,
            limits=Limits(config.decode_seconds, config.decode_memory),
            backend="pyav" if video.backend == "auto" else video.backend,
            recover=config.damaged == "recover",
        )

    def settings(self, kind: Kind) -> dict[str, Any]:
        """What changes the pixels of this kind of media, as plain values."""
        if kind == "image":
            return {"shrink": asdict(self.image)}
        return {
            "shrink": asdict(self.video),
            "sampling": _told(self.sampling),
            "backend": self.backend,
        }

    def media_uuid(self, kind: Kind, data: bytes) -> str:
        """The identity of media as a file."""
        return media_uuid(data)

    def load(self, kind: Kind, data: bytes) -> tuple[str, LoadedMedia]:
        """The media UUID of the bytes, and their pixels.

        Raises:
            ItemError: if the bytes are not such media, damaged, too large, or end or hang their decoder.
        """
        media = media_uuid(data)
        uuid = pixels_uuid(media, self.settings(kind))
        if kind == "image":
            pixels, metadata = self._decoded(decode_image, data, {"budget": self.image})
        else:
            options = {"budget": self.video, "sampling": self.sampling, "backend": self.backend}
            pixels, metadata = self._decoded(decode_video, data, options)
        return media, LoadedMedia(kind, uuid, pixels, metadata)

    def _decoded(
        self, decoder: Decoder, data: bytes, options: dict[str, Any]
    ) -> tuple[Pixels, dict[str, Any] | None]:
        options |= {"max_pixels": self.max_file_pixels, "recover": self.recover}
        if self.limits is not None:
            return decode_isolated(decoder, data, options, self.limits)
        found = decoder(data, **options)
        return found if isinstance(found, tuple) else (found, None)


def _told(sampling: FrameSampling) -> dict[str, Any]:
    """A sampling as plain values; what was not asked for is left out, so that older recipes keep their ids."""
    told = asdict(sampling)
    return {key: told[key] for key in told if key in _FIRST or told[key] != getattr(FrameSampling, key)}


def _budget(spec: ModelSpec, kind: Kind, max_pixels: int | None) -> PixelBudget:
    if max_pixels is not None:
        return PixelBudget(max_pixels=max_pixels)
    media = spec.media.get(kind)
    return PixelBudget(**media.shrink.model_dump()) if media else PixelBudget()
