"""Training samples: drawings on an exact grid, with what each patch shows."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from demo.draw import Mark, draw_shapes, draw_text, draw_video
from demo.training.grids import PATCH, Grid

_TEXT_SHARE = 0.62
_RESIZE_PIXELS = 13  # at most this much off the grid, so that it is still the nearest one
_CORE = 0.75  # of a shape's radius: patches whose centre is within show the shape

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Variety:
    """How varied the samples are."""

    level: float = 1.0
    """Difficulty, 0 to 1."""
    gradient_share: float = 0.2
    """How many have a gradient as background."""
    resize_share: float = 0.5
    """How many are drawn at a slightly other size and resized, as the processor does with real pictures."""


@dataclass(frozen=True)
class Sample:
    """A question about pixels, with its answer."""

    pixels: Bytes
    """`grid.shape`."""
    question: str
    answer: str
    labels: Bytes
    """Per patch, in Qwen's order: what it shows, 0 for background. All 0 for videos."""
    orders: Bytes
    """Per patch: the place in the answer of what it shows."""


def draw_sample(rng: random.Random, grid: Grid, variety: Variety, kind: str | None = None) -> Sample:
    """A sample of the grid; `kind` of a picture is `text` or `shapes`, by chance if not given."""
    if grid.frames > 1:
        return _draw_video_sample(rng, grid, variety)
    if kind is None:
        kind = "text" if rng.random() < _TEXT_SHARE else "shapes"
    width, height = grid.width, grid.height
    if rng.random() < variety.resize_share:
        width += rng.randint(-_RESIZE_PIXELS, _RESIZE_PIXELS)
        height += rng.randint(-_RESIZE_PIXELS, _RESIZE_PIXELS)
    draw = draw_text if kind == "text" else draw_shapes
    drawing = draw(rng, width, height, level=variety.level, gradient_share=variety.gradient_share)
    image = drawing.image
    if image.size != (grid.width, grid.height):
        image = image.resize((grid.width, grid.height), Image.Resampling.BICUBIC)
    stretch = (grid.width / width, grid.height / height)
    labels, orders = label_patches(drawing.marks, grid, stretch)
    return Sample(np.asarray(image)[None], drawing.question, drawing.answer, labels, orders)


def _draw_video_sample(rng: random.Random, grid: Grid, variety: Variety) -> Sample:
    clip = draw_video(rng, grid.width, grid.height, grid.frames, gradient_share=variety.gradient_share)
    pixels = np.stack([np.asarray(frame) for frame in clip.frames])
    nothing = np.zeros(grid.patches, np.uint8)
    return Sample(pixels, clip.question, clip.answer, nothing, nothing)


def label_patches(marks: Sequence[Mark], grid: Grid, stretch: tuple[float, float]) -> tuple[Bytes, Bytes]:
    """Labels and orders per patch; `stretch`: how much larger the grid is than the drawing, across and down."""
    high, wide = 2 * grid.rows, 2 * grid.columns
    labels = np.zeros((high, wide), np.uint8)
    orders = np.zeros((high, wide), np.uint8)
    for mark in marks:
        covered = _cover(mark, high, wide, stretch)
        labels[covered] = mark.label
        orders[covered] = mark.order
    return _to_merge_order(labels, grid), _to_merge_order(orders, grid)


def _cover(mark: Mark, high: int, wide: int, stretch: tuple[float, float]) -> NDArray[np.bool_]:
    """The patches that show the mark: the one at its centre, and those in the core of a shape."""
    across, down = stretch
    x, y = mark.x * across, mark.y * down
    covered = np.zeros((high, wide), np.bool_)
    if mark.radius:
        rows = (np.arange(high)[:, None] * PATCH + PATCH / 2 - y) / down
        columns = (np.arange(wide)[None] * PATCH + PATCH / 2 - x) / across
        covered = rows * rows + columns * columns < (_CORE * mark.radius) ** 2
    row = min(max(int(y // PATCH), 0), high - 1)
    column = min(max(int(x // PATCH), 0), wide - 1)
    covered[row, column] = True
    return covered


def _to_merge_order(values: Bytes, grid: Grid) -> Bytes:
    squares = values.reshape(grid.rows, 2, grid.columns, 2)
    return squares.transpose(0, 2, 1, 3).reshape(-1)
