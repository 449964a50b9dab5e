"""From a file's bytes to what a model takes, with the identity of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pipeline.config import MediaConfig
from pipeline.errors import Code, ItemError
from pipeline.identity import identified, media_uuid, pixels_uuid
from pipeline.media.document import PageScale, count_pages, decode_page
from pipeline.media.image import decode_image
from pipeline.media.isolated import Decoder, Limits, Pixels, decode_isolated
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import FrameSampling, decode_video
from pipeline.models.packing import LoadedMedia
from pipeline.models.spec import Kind, ModelSpec
from pipeline.segment import Segment

DECODING = 1
"""Part of every recipe: raised when the same file under the same settings gives other pixels than before."""

DEFAULT_FRAMES = 16
DEFAULT_SCALE = PageScale()
_Found = tuple[Pixels, dict[str, Any] | None]
# Always part of a recipe, set or not.
_FIRST = ("num_frames", "fps", "max_frames")


@dataclass(frozen=True)
class MediaLoader:
    """Decodes media for one model under one configuration.

    `image`, `video`, `sampling`, `backend` and `scale` are all that changes the pixels, so they belong to the
    recipe and to the identity of the pixels. `text_chars` bounds the text of a page. `max_file_pixels` and
    `limits` only refuse, and `recover` only accepts: a file that is whole has the same pixels with and
    without it.
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
    scale: PageScale = DEFAULT_SCALE
    text_chars: int = 0

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
            scale=PageScale(config.document.dpi, config.document.max_side),
        )

    @property
    def segment(self) -> Segment:
        """The part of every video that is shown where no other is asked for."""
        return Segment(self.sampling.start, self.sampling.end)

    def settings(self, kind: Kind) -> dict[str, Any]:
        """What changes the pixels of this kind of media, as plain values."""
        if kind == "image":
            # Left out where it is the default, so that recipes without documents are what they were.
            document = {} if self.scale == DEFAULT_SCALE else {"document": asdict(self.scale)}
            return {"decoding": DECODING, "shrink": asdict(self.image), **document}
        return {
            "decoding": DECODING,
            "shrink": asdict(self.video),
            "sampling": _told(self.sampling),
            "backend": self.backend,
        }

    def load(
        self,
        kind: Kind,
        data: bytes,
        page: int | None = None,
        password: str | None = None,
        media: str | None = None,
        *,
        segment: Segment | None = None,
    ) -> tuple[str, LoadedMedia]:
        """The media UUID of the bytes (or of their page or part), and their pixels.

        Args:
            page: of a document (PDF, or TIFF of several pages), from 1; None: `data` is the medium itself.
            password: of an encrypted PDF.
            media: the UUID, where it is known: to work it out takes a second for a GiB.
            segment: of a video, where that is another one than `self.segment`.

        Raises:
            ItemError: if the bytes are not such media, damaged, too large, or end or hang their decoder.
        """
        media = media or identified(media_uuid(data), page, password, segment)
        if page is not None:
            uuid = pixels_uuid(media, {"shrink": asdict(self.image), "document": asdict(self.scale)})
            options = {"page": page, "scale": self.scale, "budget": self.image, "text_chars": self.text_chars}
            (pixels, facts), recovered = self._recovered(decode_page, data, options | {"password": password})
            return media, LoadedMedia(kind, uuid, pixels, None, (facts or {})["text"], recovered)
        uuid = pixels_uuid(media, self.settings(kind))
        if kind == "image":
            (pixels, metadata), recovered = self._recovered(decode_image, data, {"budget": self.image})
        else:
            part = segment or self.segment
            sampling = replace(self.sampling, start=part.start, end=part.end)
            options = {"budget": self.video, "sampling": sampling, "backend": self.backend}
            (pixels, metadata), recovered = self._recovered(decode_video, data, options)
        return media, LoadedMedia(kind, uuid, pixels, metadata, recovered=recovered)

    def pages(self, data: bytes, password: str | None = None) -> int:
        """How many pages a document has.

        Raises:
            ItemError: it cannot be opened.
        """
        _, facts = self._decoded(count_pages, data, {"password": password})
        return int((facts or {})["pages"])

    def _recovered(self, decoder: Decoder, data: bytes, options: dict[str, Any]) -> tuple[_Found, bool]:
        """What the decoder finds, and whether it had to be lenient: it is strict first."""
        options |= {"max_pixels": self.max_file_pixels}
        try:
            return self._decoded(decoder, data, options), False
        except ItemError as error:
            if not self.recover or error.code not in {Code.DECODE_TRUNCATED, Code.DECODE_CORRUPT}:
                raise
        return self._decoded(decoder, data, options | {"recover": True}), True

    def _decoded(self, decoder: Decoder, data: bytes, options: dict[str, Any]) -> _Found:
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
