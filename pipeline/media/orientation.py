"""How a decoded video frame is to be shown: turned, mirrored, stretched, on white, as RGB."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from av.sidedata.sidedata import Type
from av.video.reformatter import Interpolation, VideoReformatter

# Exact conversion by swscale, since its quicker ways are 2 of 255 too dark; in the frame's own matrix and range
# (BT.601 where it names none, as FFmpeg's tools do). HDR is `hdr.py`'s.
_SCALING = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
# Pixels longer than this are a damaged header, and no picture shape in use (anamorphic film is 2.0).
_MOST_STRETCH = 4


@dataclass(frozen=True)
class Orientation:
    """What is done to the stored rows and columns: first `swap` them, then mirror left-right, top-bottom."""

    swap: bool = False
    mirror: bool = False
    flip: bool = False

    @classmethod
    def of(cls, frame: Any) -> Orientation:
        """The orientation that the frame's display matrix says, to the nearest quarter turn.

        The matrix takes the point (x, y) to (ax + cy, bx + dy): ISO/IEC 14496-12, 6.2.2.
        """
        matrix = frame.side_data.get(Type.DISPLAYMATRIX)
        if matrix is None:
            return cls()
        a, b, _, c, d = struct.unpack("=5i", bytes(matrix)[:20])
        if abs(a) + abs(d) >= abs(b) + abs(c):
            return cls(False, a < 0, d < 0)
        return cls(True, c < 0, b < 0)

    def applied(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return (H, W, 3) pixels as they are to be seen, as a view."""
        if self.swap:
            pixels = pixels.transpose(1, 0, 2)
        return pixels[:: -1 if self.flip else 1, :: -1 if self.mirror else 1]


def display_size(frame: Any, sample_aspect: Fraction | None) -> tuple[int, int]:
    """Return the (width, height) of a frame with square pixels: the longer way is stretched, none shrunk."""
    width, height = frame.width, frame.height
    if not sample_aspect or not Fraction(1, _MOST_STRETCH) <= sample_aspect <= _MOST_STRETCH:
        return width, height
    if sample_aspect > 1:
        return round(width * sample_aspect), height
    return width, round(height / sample_aspect)


def to_rgb(scaler: VideoReformatter, frame: Any, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return a frame as uint8 (height, width, 3) RGB, scaled, not turned; transparency is laid over white.

    It may be a view of memory that lives as long as it does. `scaler` is the clip's: a frame's own one starts
    threads, and keeps them until Python collects its garbage.
    """
    if not any(component.is_alpha for component in frame.format.components):
        return _scaled(scaler, frame, width, height, "rgb24")
    rgba = _scaled(scaler, frame, width, height, "rgba").astype(np.uint16)
    alpha = rgba[..., 3:]
    return ((rgba[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def _scaled(
    scaler: VideoReformatter, frame: Any, width: int, height: int, pixel_format: Literal["rgb24", "rgba"]
) -> npt.NDArray[np.uint8]:
    channels = len(pixel_format.removesuffix("24"))
    small = scaler.reformat(frame, width, height, pixel_format, interpolation=_SCALING, threads=1)
    plane: Any = small.planes[0]
    rows = np.frombuffer(plane, np.uint8)[: height * plane.line_size].reshape(height, plane.line_size)
    return rows[:, : width * channels].reshape(height, width, channels)
