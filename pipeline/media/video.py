"""A video file's bytes to the sampled RGB frames and the metadata that vLLM's video models ask for."""

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
from pipeline.media.boxes import declared_sizes
from pipeline.media.sampling import FrameSampling, frame_indices
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.media.sniff import is_cut_short, looks_like

__all__ = ["FrameSampling", "decode_video", "frame_indices"]

# What the frames of one item may take in memory, whatever was asked for.
MAX_CLIP_BYTES = 2**31
# Where decord2 3.4 finds frames by seeking; elsewhere (AVI, FLV, MPEG-PS, WMV) it lands on others, silently.
_SEEKABLE = {"MP4 or MOV video", "Matroska or WebM video", "GIF image"}
# decord2 3.4 takes the padding of a narrow row for a fourth channel (widths 16, 24, 32, 48, 96 and 144; none
# from 145 to 2000): frames narrower than this are decoded wider, then shrunk.
_NARROW = 160


def decode_video(
    data: bytes, *, sampling: FrameSampling, budget: PixelBudget, max_pixels: int
) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Decode the sampled frames of a video file to uint8 (T, H, W, 3) RGB, upright and shrunk to `budget`.

    The metadata has `fps` (frames per second), `duration` (seconds), `total_num_frames`, `frames_indices`
    (of the T frames, in the file's own count), `video_backend` and `do_sample_frames` (False: they are
    sampled already).
    `max_pixels` bounds width x height of one frame in the file.

    Raises ItemError: EMPTY_FILE, NOT_MEDIA (no video in it), TOO_LARGE (a frame, or all frames together),
    DECODE_TRUNCATED (the file's structure says that its end is missing) or DECODE_CORRUPT.
    """
    if not data:
        raise ItemError(Code.EMPTY_FILE, "the video file has 0 bytes: fetch or export it again")
    kind = looks_like(data)
    if kind.family != "video" and kind.name != "GIF image":
        raise ItemError(Code.NOT_MEDIA, f"expected a video, but this looks like: {kind.name}")
    # decord can crash on, or silently shorten, a clip that lacks its end: it never sees one that says so.
    if kind.family == "video" and is_cut_short(data):
        raise ItemError(Code.DECODE_TRUNCATED, f"the {kind.name} ends too early: fetch it again")
    if kind.name == "MPEG transport stream":
        raise ItemError(Code.NOT_MEDIA, f"decord gives wrong frames of an {kind.name}: remux it to MP4 first")
    for width, height in declared_sizes(data):
        _check_frame(width, height, max_pixels)
    decord = _decord()
    try:
        return _decode(data, kind.name in _SEEKABLE, sampling, budget, max_pixels)
    except (decord.DECORDError, RuntimeError, AssertionError, UnicodeDecodeError, StopIteration) as error:
        raise _damaged(kind.name, error) from error
    except MemoryError as error:
        raise ItemError(Code.TOO_LARGE, "no memory left to decode this video: sample fewer frames") from error


def _decode(
    data: bytes, seekable: bool, sampling: FrameSampling, budget: PixelBudget, max_pixels: int
) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    reader = _reader(data)
    height, width = reader.next().shape[:2]  # of the upright frame: decord applies the container's rotation
    _check_frame(width, height, max_pixels)
    total, fps = len(reader), float(reader.get_avg_fps())
    if not (math.isfinite(fps) and fps > 0):
        raise ItemError(Code.DECODE_CORRUPT, f"the video says {fps} frames per second: re-encode it")
    indices = frame_indices(total, fps, sampling)
    target = shrunk_size(width, height, budget)
    _check_clip(len(indices), *target)
    decoded = _decoded_size(*target)
    if decoded != (width, height) or not seekable:
        reader = _reader(data, *decoded)
    frames = reader.get_batch(indices).asnumpy() if seekable else _in_turn(reader, indices)
    if decoded != target:
        frames = np.stack([np.asarray(Image.fromarray(frame).resize(target)) for frame in frames])
    metadata = {
        "fps": fps,
        "duration": total / fps,
        "total_num_frames": total,
        "frames_indices": indices,
        "video_backend": "decord",
        "do_sample_frames": False,
    }
    return frames, metadata


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


def _check_frame(width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        size = f"{width}x{height} = {width * height}"
        raise ItemError(
            Code.TOO_LARGE,
            f"a frame has {size} pixels, more than max_pixels={max_pixels}: raise it or shrink the file",
        )


def _check_clip(frames: int, width: int, height: int) -> None:
    size = frames * width * height * 3
    if size > MAX_CLIP_BYTES:
        shape = f"{frames} frames of {width}x{height} take {size} bytes, more than {MAX_CLIP_BYTES}"
        raise ItemError(Code.TOO_LARGE, f"{shape}: set max_frames or a smaller budget")


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
