"""A video file's bytes to the sampled RGB frames and the metadata that vLLM's video models ask for."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media import animation_frames
from pipeline.media.boxes import declared_sizes
from pipeline.media.clip import check_frame
from pipeline.media.sampling import FrameSampling, frame_indices
from pipeline.media.shrink import PixelBudget
from pipeline.media.sniff import is_cut_short, looks_like

__all__ = ["FrameSampling", "decode_video", "frame_indices"]


def decode_video(
    data: bytes,
    *,
    sampling: FrameSampling,
    budget: PixelBudget,
    max_pixels: int,
    backend: Literal["pyav", "decord"] = "pyav",
    recover: bool = False,
) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Decode the sampled frames of a video file to uint8 (T, H, W, 3) RGB, upright and shrunk to `budget`.

    Animated GIF, PNG and WebP are videos too. HDR is mapped to sRGB, interlaced frames lose their combs.
    The metadata has `fps` (frames per second), `duration` (seconds), `total_num_frames`, `frames_indices`
    (of the T frames; where frames come unevenly, on a clock of `fps` ticks, so that index / fps is the time),
    `video_backend` and `do_sample_frames` (False: they are sampled already).
    `max_pixels` bounds width x height of one frame in the file. With `recover` a damaged file gives those
    frames that are whole, as long as half of the frames asked for are.

    PyAV serves every file. decord2 3.4 is right for fewer (it ends the process on some damaged MP4,
    lands on wrong frames in open-GOP H.264 and HEVC, MPEG-TS and AVI, ignores edit lists), and where it is
    right it is no faster: 8 and 16 frames of a 20 s clip, 1080p H.264, keyframes 250 apart, took PyAV 2.7 and
    4.1 s and decord2 3.5 and 4.3 s with the same pixels (`benchmarks/video_decoders.py`, two shared cores).

    Raises ItemError: EMPTY_FILE, NOT_MEDIA (no video in it), TOO_LARGE (a frame, or all frames together),
    CLIP_OUTSIDE (the file ends before the part asked for), DECODE_TRUNCATED (the file's structure says that its
    end is missing) or DECODE_CORRUPT. MemoryError: `isolated.py` knows whether that is this file's fault.
    """
    if not data:
        raise ItemError(Code.EMPTY_FILE, "the video file has 0 bytes: fetch or export it again")
    kind = looks_like(data)
    if kind.name in animation_frames.KINDS:
        clip = animation_frames.decode_animation(data, kind.name, sampling, budget, max_pixels)
        return clip.frames, clip.metadata
    if kind.family != "video" and kind.name != "GIF image":
        raise ItemError(Code.NOT_MEDIA, f"expected a video, but this looks like: {kind.name}")
    cut = kind.family == "video" and is_cut_short(data)
    if cut and (backend == "decord" or not recover):
        raise ItemError(Code.DECODE_TRUNCATED, f"the {kind.name} ends too early: fetch it again")
    for width, height in declared_sizes(data):
        check_frame(width, height, max_pixels)
    try:
        if backend == "decord":
            from pipeline.media.decord_frames import decode_by_decord

            clip = decode_by_decord(data, kind.name, sampling, budget, max_pixels)
        else:
            from pipeline.media.pyav_frames import PyAVDecoder

            clip = PyAVDecoder(data, kind.name, max_pixels, recover).decode(sampling, budget)
    except ItemError as error:
        if cut and error.code is Code.DECODE_CORRUPT:
            raise ItemError(Code.DECODE_TRUNCATED, error.reason) from error
        raise
    return clip.frames, clip.metadata
