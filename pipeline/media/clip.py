"""The frames of a video with the facts about them that models want, and how large they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media.timeline import Timeline

MAX_CLIP_BYTES = 2**31
"""What the frames of one item may take in memory, whatever was asked for."""


@dataclass(frozen=True)
class Clip:
    """Sampled frames, uint8 (T, H, W, 3) RGB; `indices` are theirs among `total`, `fps` frames a second."""

    frames: npt.NDArray[np.uint8]
    fps: float
    total: int
    indices: list[int]
    backend: str

    @classmethod
    def on(cls, timeline: Timeline, frames: npt.NDArray[np.uint8], shown: list[int], backend: str) -> Clip:
        """The clip of these frames; `shown` are theirs among all that the timeline shows."""
        rate, places = timeline.clock()
        total = len(places) if timeline.even else places[-1] + max(1, round(rate / timeline.fps))
        return cls(frames, rate, total, [places[index] for index in shown], backend)

    @property
    def metadata(self) -> dict[str, Any]:
        """The keys that vLLM asks for; `do_sample_frames` is False, since they are sampled already."""
        return {
            "fps": self.fps,
            "duration": self.total / self.fps,
            "total_num_frames": self.total,
            "frames_indices": self.indices,
            "video_backend": self.backend,
            "do_sample_frames": False,
        }


def check_frame(width: int, height: int, max_pixels: int) -> None:
    """Raise ItemError TOO_LARGE for a frame of more than `max_pixels`."""
    if width * height > max_pixels:
        size = f"{width}x{height} = {width * height}"
        raise ItemError(
            Code.TOO_LARGE,
            f"a frame has {size} pixels, more than max_pixels={max_pixels}: raise it or shrink the file",
        )


def check_clip(frames: int, width: int, height: int) -> None:
    """Raise ItemError TOO_LARGE for frames that take more than MAX_CLIP_BYTES together."""
    size = frames * width * height * 3
    if size > MAX_CLIP_BYTES:
        shape = f"{frames} frames of {width}x{height} take {size} bytes, more than {MAX_CLIP_BYTES}"
        raise ItemError(Code.TOO_LARGE, f"{shape}: set max_frames or a smaller budget")
