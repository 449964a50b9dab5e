"""Sampled frames by PyAV (FFmpeg's own libraries): the same frame k in every container, upright, as seen."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from av.container import InputContainer
from av.error import EOFError as EndOfFile
from av.error import FFmpegError
from av.stream import Discard, Disposition
from av.video.reformatter import VideoReformatter

from pipeline.errors import Code, ItemError
from pipeline.media.choosing import chosen_frames
from pipeline.media.clip import Clip, check_clip, check_frame
from pipeline.media.deinterlace import progressive
from pipeline.media.hdr import is_hdr, tone_mapped
from pipeline.media.orientation import Orientation, display_size, to_rgb
from pipeline.media.sampling import FrameSampling
from pipeline.media.seeking import decode_wanted
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.media.timeline import read_timeline

# The demuxer is named, not probed for: among FFmpeg's there are playlists, which open other files and URLs.
_DEMUXERS = {
    "MP4 or MOV video": "mov",
    "Matroska or WebM video": "matroska",
    "AVI video": "avi",
    "FLV video": "flv",
    "Ogg file": "ogg",
    "MPEG program stream": "mpeg",
    "MPEG video": "mpegvideo",
    "MPEG transport stream": "mpegts",
    "WMV or ASF video": "asf",
    "GIF image": "gif",
}
_BUFFER = 2**20
_HEAD = 2**16
# Of a damaged file, where that is accepted: how much of what was asked for must be there.
_ENOUGH = 0.5
# A title that is not UTF-8 is no damage. PyAV 19 takes such bytes, and has no such choice any more.
_CHOICE = hasattr(InputContainer, "metadata_errors")
_ANY_METADATA: dict[str, Any] = {"metadata_errors": "replace"} if _CHOICE else {}

av.logging.set_level(None)  # FFmpeg's own complaints: each error is raised besides


@dataclass(frozen=True)
class PyAVDecoder:
    """Decodes one video file. `name` is what it looks like.

    With `recover` frames that damage has spoiled are left out, as long as half of those asked for are whole.
    """

    data: bytes
    name: str
    max_pixels: int
    recover: bool

    def decode(self, sampling: FrameSampling, budget: PixelBudget) -> Clip:
        """Return the sampled frames. Raises ItemError: NOT_MEDIA, TOO_LARGE or DECODE_CORRUPT."""
        try:
            return self._decode(sampling, budget)
        except MemoryError:
            raise
        except BlockingIOError as error:  # a thread that cannot be started, for want of memory
            raise MemoryError from error
        except EndOfFile as error:  # a header, and nothing after it
            raise self._no_frames() from error
        except FFmpegError as error:
            raise self._damaged(type(error).__name__) from error

    def _decode(self, sampling: FrameSampling, budget: PixelBudget) -> Clip:
        with self._opened() as (container, stream):
            timeline = read_timeline(container, stream, self.data[:_HEAD])
            aspect = stream.sample_aspect_ratio
        if timeline is None:
            raise self._no_frames()
        chosen = chosen_frames(timeline, sampling)
        stamps = sorted({timeline.shown[index] for index in chosen})
        pictures = _Pictures(budget, self.max_pixels, aspect, len(stamps))
        rows = decode_wanted(self._opened, timeline, stamps, pictures.add)
        whole = [index for index in chosen if timeline.shown[index] in rows]
        if not whole or len(whole) < len(chosen) * (_ENOUGH if self.recover else 1.0):
            raise self._damaged(f"{len(whole)} of {len(chosen)} frames are whole")
        frames = pictures.taken([rows[timeline.shown[index]] for index in whole])
        return Clip.on(timeline, frames, whole, "pyav")

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        # Room for the padding of small frames: this bounds what is allocated, `check_frame` what is accepted.
        options = {"max_pixels": str(min(2 * self.max_pixels + 2**20, 2**31 - 1))}
        with av.open(
            io.BytesIO(self.data),
            format=_DEMUXERS[self.name],
            options={"protocol_whitelist": "none"},
            buffer_size=_BUFFER,
            **_ANY_METADATA,
        ) as container:
            stream = self._stream(container)
            for other in container.streams:
                other.discard = Discard.default if other is stream else Discard.all
            context = stream.codec_context
            check_frame(context.width, context.height, self.max_pixels)
            context.options = options
            context.thread_count = 1  # as many workers as cores decode at the same time
            yield container, stream

    def _stream(self, container: Any) -> Any:
        films = [one for one in container.streams.video if not one.disposition & Disposition.attached_pic]
        if not films:
            raise ItemError(Code.NOT_MEDIA, f"the {self.name} has no video stream: it is audio only")
        known = [one for one in films if one.codec_context is not None]
        if not known:
            raise ItemError(Code.NOT_MEDIA, f"the {self.name} has a codec that is not known: re-encode it")
        best = container.streams.best("video")
        return best if best in known else known[0]

    def _no_frames(self) -> ItemError:
        return ItemError(Code.NOT_MEDIA, f"the video stream of the {self.name} has no frames")

    def _damaged(self, why: str) -> ItemError:
        reason = f"the {self.name} is damaged ({why}): re-encode or replace it"
        return ItemError(Code.DECODE_CORRUPT, reason)


class _Pictures:
    """One array of all pictures, as large as the first frame and the budget make them."""

    def __init__(self, budget: PixelBudget, max_pixels: int, aspect: Fraction | None, count: int) -> None:
        self._budget, self._max_pixels, self._aspect, self._count = budget, max_pixels, aspect, count
        self._array: npt.NDArray[np.uint8] | None = None
        self._next = 0
        self._scaler = VideoReformatter()

    def add(self, frame: Any) -> int:
        """Add a decoded frame, upright, and return its row."""
        check_frame(frame.width, frame.height, self._max_pixels)
        turned = Orientation.of(frame)
        if self._array is None:
            self._array = self._made(frame, turned)
        height, width = self._array.shape[1:3]
        stored = (height, width) if turned.swap else (width, height)
        rgb = tone_mapped if is_hdr(frame) else to_rgb
        self._array[self._next] = turned.applied(rgb(self._scaler, progressive(frame), *stored))
        self._next += 1
        return self._next - 1

    def taken(self, rows: list[int]) -> npt.NDArray[np.uint8]:
        """Return the pictures of these rows, uint8 (T, H, W, 3)."""
        assert self._array is not None
        return self._array if rows == list(range(len(self._array))) else self._array[rows]

    def _made(self, frame: Any, turned: Orientation) -> npt.NDArray[np.uint8]:
        width, height = display_size(frame, self._aspect)
        check_frame(width, height, self._max_pixels)
        width, height = shrunk_size(*((height, width) if turned.swap else (width, height)), self._budget)
        check_clip(self._count, width, height)
        return np.empty((self._count, height, width, 3), np.uint8)
