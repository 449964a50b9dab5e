"""The pictures of the corpus: four colours, one in each quarter; a video's have their number in a band."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BITS = 6
_QUARTERS = [[(200, 60, 40), (50, 170, 70)], [(40, 70, 190), (220, 200, 60)]]

Pixels = npt.NDArray[np.uint8]


def picture(width: int = 60, height: int = 40) -> Pixels:
    """Four coloured quarters under a slope of light, so that no two places are alike."""
    y, x = np.mgrid[:height, :width]
    colours = np.array(_QUARTERS)[2 * y // height, 2 * x // width]
    slope = (x / width + y / height - 1)[..., None] * 40
    return np.clip(colours + slope, 0, 255).astype(np.uint8)


def deep_picture(width: int = 60, height: int = 40) -> npt.NDArray[np.uint16]:
    """The same in 16 bits, with something in the lower byte."""
    noise = np.random.default_rng(1).integers(0, 256, (height, width, 3))
    return (picture(width, height).astype(np.uint16) * 256 + noise).astype(np.uint16)


def numbered(number: int, width: int = 96, height: int = 64) -> Pixels:
    """A frame that shows its number: a white cell for each 1 of its bits, the highest at the left."""
    frame = picture(width, height)
    top, bottom = height * 3 // 8, height * 5 // 8
    for bit in range(BITS):
        left, right = width * bit // BITS, width * (bit + 1) // BITS
        frame[top:bottom, left:right] = 235 if number >> (BITS - 1 - bit) & 1 else 20
    return frame


def number_in(frame: Pixels) -> int:
    """Read a frame's number from the middles of its cells."""
    height, width = frame.shape[:2]
    number = 0
    for bit in range(BITS):
        left, right = width * bit / BITS, width * (bit + 1) / BITS
        margin = (right - left) / 4
        cell = frame[height * 7 // 16 : height * 9 // 16, int(left + margin) : int(right - margin) + 1]
        number = 2 * number + int(cell.mean() > 128)
    return number


def quarters(pixels: Pixels) -> list[list[float]]:
    """The mean colour of each quarter of (H, W, 3) pixels: top left, top right, bottom left, bottom right."""
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    parts = (
        pixels[:height, :width],
        pixels[:height, -width:],
        pixels[-height:, :width],
        pixels[-height:, -width:],
    )
    return [[round(float(mean), 2) for mean in part.reshape(-1, 3).mean(axis=0)] for part in parts]
