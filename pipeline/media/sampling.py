"""Which frames of a video are shown to the model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class FrameSampling:
    """`num_frames` evenly spaced frames of a clip, or `fps` frames of each second of it, or its keyframes.

    num_frames: how many frames, the first and the last of the clip among them. None: not by number.
    fps: frames per second of playing time. None: not by rate.
    max_frames: never more than this; of more by rate or of keyframes, this many evenly spaced. None: no bound.
    keyframes: those that the encoder coded whole: its cuts, and one at least every few seconds.
    start, end: the clip, in seconds from the first frame of the file; `end` None is the end of the file.

    Raises ValueError when not exactly one of `num_frames`, `fps` and `keyframes` is given, one is not positive,
    or the clip ends before it starts.
    """

    num_frames: int | None = None
    fps: float | None = None
    max_frames: int | None = None
    keyframes: bool = False
    start: float = 0.0
    end: float | None = None

    def __post_init__(self) -> None:
        if (self.num_frames is not None) + (self.fps is not None) + self.keyframes != 1:
            raise ValueError(
                f"give exactly one of num_frames ({self.num_frames}), fps ({self.fps}) and keyframes"
            )
        if not (math.isfinite(self.start) and self.start >= 0):
            raise ValueError(f"start is {self.start}: give seconds from the start of the file")
        if self.end is not None and not (math.isfinite(self.end) and self.end > self.start):
            raise ValueError(f"end is {self.end}: give more than start ({self.start}), or None")
        for name in ("num_frames", "max_frames"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: give at least 1")
        if self.fps is not None and not (math.isfinite(self.fps) and self.fps > 0):
            raise ValueError(f"fps is {self.fps}: give a number above 0")


def frame_indices(total: int, native_fps: float, sampling: FrameSampling) -> list[int]:
    """Return the indices, ascending and each once, of the frames to take from a clip of `total` frames.

    Evenly spaced means numpy.linspace(0, total - 1, N) rounded down, as vLLM does. By rate, frame k is the
    one shown k / fps seconds into the clip. A clip with fewer frames than asked for gives every frame once.
    Keyframes are not known here: `choosing.py`.
    Raises ValueError when `total` is less than 1 or `native_fps` (frames/second) is not a positive number.
    """
    if total < 1:
        raise ValueError(f"a clip of {total} frames has none to take")
    if not (math.isfinite(native_fps) and native_fps > 0):
        raise ValueError(f"a clip of {native_fps} frames per second has no playing time")
    cap = total if sampling.max_frames is None else min(total, sampling.max_frames)
    if sampling.num_frames is not None:
        return evenly(total, min(cap, sampling.num_frames))
    assert sampling.fps is not None  # by FrameSampling
    step = native_fps / sampling.fps
    # What is added and taken off makes up for a step that rounding puts a hair beside a whole number.
    count = math.ceil(total / step - 1e-9)
    if count > cap:
        return evenly(total, cap)
    return [min(total - 1, int(k * step + 1e-6)) for k in range(count)]


def evenly(total: int, count: int) -> list[int]:
    """Return `count` evenly spaced indices of `total`, the first and the last among them."""
    return [int(index) for index in np.linspace(0, total - 1, count).astype(np.int64)]
