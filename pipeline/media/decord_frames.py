"""Sampled frames by decord2: an option, right only where PyAV is too, and no faster (see `video.py`)."""

from __future__ import annotations

import io
import math
import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.media.clip import Clip, check_clip, check_frame
from pipeline.media.sampling import FrameSampling, frame_indices
from pipeline.media.shrink import PixelBudget, shrunk_size

# decord2 3.4 takes the padding of a narrow row for a fourth channel (widths 16, 24, 32, 48, 96 and 144; none
# from 145 to 2000): frames narrower than this are decoded wider, then shrunk.
_NARROW = 160
# Where decord2 3.4 finds frames by seeking; elsewhere (AVI, FLV, MPEG-PS, WMV) it lands on others, silently.
_SEEKABLE = {"MP4 or MOV video", "Matroska or WebM video", "GIF image"}


def decode_by_decord(
    data: bytes, name: str, sampling: FrameSampling, budget: PixelBudget, max_pixels: int
) -> Clip:
    """Decode the sampled frames; `name` is what the file looks like.

    Raises ItemError: NOT_MEDIA, TOO_LARGE or DECODE_CORRUPT. It can also end the process.
    """
    if name == "MPEG transport stream":
        raise ItemError(Code.NOT_MEDIA, f"decord gives wrong frames of an {name}: set media.video.backend=pyav")
    decord = _decord()
    try:
        return _decode(data, name in _SEEKABLE, sampling, budget, max_pixels)
    except (decord.DECORDError, RuntimeError, AssertionError, UnicodeDecodeError, StopIteration) as error:
        raise _damaged(name, error) from error


def _decode(data: bytes, seekable: bool, sampling: FrameSampling, budget: PixelBudget, max_pixels: int) -> Clip:
    reader = _reader(data)
    height, width = reader.next().shape[:2]  # of the upright frame: decord applies the container's rotation
    check_frame(width, height, max_pixels)
    total, fps = len(reader), float(reader.get_avg_fps())
    if not (math.isfinite(fps) and fps > 0):
        raise ItemError(Code.DECODE_CORRUPT, f"the video says {fps} frames per second: re-encode it")
    indices = frame_indices(total, fps, sampling)
    target = shrunk_size(width, height, budget)
    check_clip(len(indices), *target)
    decoded = _decoded_size(*target)
    if decoded != (width, height) or not seekable:
        reader = _reader(data, *decoded)
    frames = reader.get_batch(indices).asnumpy() if seekable else _in_turn(reader, indices)
    if decoded != target:
        frames = np.stack([np.asarray(Image.fromarray(frame).resize(target)) for frame in frames])
    return Clip(frames, fps, total, indices, "decord")


def _in_turn(reader: Any, indices: list[int]) -> npt.NDArray[np.uint8]:
    """Return the frames at `indices` of a fresh reader, all before them decoded: skip_frames() seeks too."""
    wanted = set(indices)
    decoded = (reader.next() for _ in range(indices[-1] + 1))
    return np.stack([frame.asnumpy() for index, frame in enumerate(decoded) if index in wanted])


@cache
def _decord() -> Any:
    import decord

    decord.logging.set_level(decord.logging.QUIET)  # FFmpeg's own complaints: each error is raised besides
    return decord


def _reader(data: bytes, width: int = -1, height: int = -1) -> Any:
    decord = _decord()
    # One thread: as many workers as cores decode at the same time.
    return decord.VideoReader(io.BytesIO(data), ctx=decord.cpu(0), width=width, height=height, num_threads=1)


def _decoded_size(width: int, height: int) -> tuple[int, int]:
    """Return the size to decode at for a final size: the same, or a multiple of a narrow one."""
    times = 1 if width >= _NARROW else math.ceil(_NARROW / width)
    return width * times, height * times


def _damaged(name: str, error: Exception) -> ItemError:
    text = str(error)
    if "cannot find video stream" in text:
        return ItemError(
            Code.NOT_MEDIA,
            f"the {name} has no video stream that decord can decode: audio only, or re-encode it",
        )
    # decord's messages may carry the file's own bytes and a stack trace: the checks that failed say enough.
    checks = re.findall(r"Check failed: (\w{1,80})", text)
    why = checks[-1] if checks else type(error).__name__
    return ItemError(Code.DECODE_CORRUPT, f"decord cannot decode this {name} ({why}): re-encode or replace it")
