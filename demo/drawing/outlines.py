"""Paints one shape."""

import math
from dataclasses import dataclass

from PIL import ImageDraw

from demo.drawing.palette import RGB

_ARM = 0.32  # half the width of a cross's arm
_REACH = 0.95
_INNER_STAR = 0.42


def _star_point(index: int) -> tuple[float, float]:
    radius = 1 if index % 2 == 0 else _INNER_STAR
    return radius * math.sin(math.pi * index / 5), -radius * math.cos(math.pi * index / 5)


# Corners in units of the radius, y downwards. A circle has none.
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "triangle": ((0, -0.95), (0.95, 0.8), (-0.95, 0.8)),
    "star": tuple(_star_point(index) for index in range(10)),
    "diamond": ((0, -1), (0.7, 0), (0, 1), (-0.7, 0)),
    "cross": (
        (-_ARM, -_REACH),
        (_ARM, -_REACH),
        (_ARM, -_ARM),
        (_REACH, -_ARM),
        (_REACH, _ARM),
        (_ARM, _ARM),
        (_ARM, _REACH),
        (-_ARM, _REACH),
        (-_ARM, _ARM),
        (-_REACH, _ARM),
        (-_REACH, -_ARM),
        (-_ARM, -_ARM),
    ),
}


@dataclass(frozen=True)
class Place:
    """Where a shape is and how large, in pixels: its centre and half its extent."""

    x: float
    y: float
    radius: float

    def scaled(self, factor: float) -> "Place":
        """The same place on a picture `factor` times as large."""
        return Place(self.x * factor, self.y * factor, self.radius * factor)


def paint_shape(
    draw: ImageDraw.ImageDraw, shape: str, place: Place, colour: RGB, rotation: float = 0.0
) -> None:
    """Fills `shape` at `place`, turned clockwise by `rotation` (radians)."""
    x, y, radius = place.x, place.y, place.radius
    if shape == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
        return
    cosine, sine = math.cos(rotation), math.sin(rotation)
    draw.polygon(
        [
            (x + radius * (across * cosine - down * sine), y + radius * (across * sine + down * cosine))
            for across, down in _CORNERS[shape]
        ],
        fill=colour,
    )
