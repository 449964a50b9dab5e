"""The size to shrink a picture to, so that no more pixels travel than the model can see."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class PixelBudget:
    """How large a picture may stay, in pixels; None sets no bound.

    max_pixels: the largest area (width x height).
    max_side: the longest longer side.
    min_side: what the shorter side is never shrunk below. It wins over both others: a model that resizes the
        shorter edge to this length sees it in full.

    Raises ValueError when a bound is less than 1.
    """

    max_pixels: int | None = None
    max_side: int | None = None
    min_side: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value < 1:
                raise ValueError(f"{field.name} is {value}: give at least 1, or None for no bound")


def shrunk_size(width: int, height: int, budget: PixelBudget) -> tuple[int, int]:
    """Return the largest (width, height) within `budget` of the same aspect ratio, never larger than given.

    Sides are rounded to the nearest pixel, or down where the nearest would pass `max_pixels`; none is ever 0.
    Raises ValueError when `width` or `height` is less than 1.
    """
    if width < 1 or height < 1:
        raise ValueError(f"a picture of {width}x{height} has no pixels")
    scale = 1.0
    if budget.max_pixels is not None:
        scale = min(scale, math.sqrt(budget.max_pixels / (width * height)))
    if budget.max_side is not None:
        scale = min(scale, budget.max_side / max(width, height))
    if budget.min_side is not None:
        least = min(1.0, budget.min_side / min(width, height))
        if scale <= least:
            return _nearest(width * least), _nearest(height * least)
    new_width, new_height = _nearest(width * scale), _nearest(height * scale)
    if budget.max_pixels is not None and new_width * new_height > budget.max_pixels:
        new_width, new_height = _down(width * scale), _down(height * scale)
        # A side that cannot go below 1 pixel: the other one gives way, and the aspect ratio with it.
        new_width = min(new_width, max(1, budget.max_pixels // new_height))
        new_height = min(new_height, max(1, budget.max_pixels // new_width))
    return new_width, new_height


def _nearest(side: float) -> int:
    return max(1, math.floor(side + 0.5))


def _down(side: float) -> int:
    # A whole number may come out of the floating-point product a hair too small.
    return max(1, math.floor(side + 1e-9))
