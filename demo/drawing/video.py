"""One shape that moves straight across the picture, and the caption that says where to."""

import random

from PIL import ImageDraw

from demo.drawing.kinds import Clip
from demo.drawing.outlines import Place, paint_shape
from demo.drawing.palette import make_canvas, pick_scheme
from demo.drawing.phrases import SHAPES, VIDEO_QUESTIONS, ask, name_shape


def draw_video(
    rng: random.Random, width: int, height: int, frames: int, *, gradient_share: float = 0.2
) -> Clip:
    """A video of `frames` pictures (two or more) of `width` x `height` pixels.

    Args:
        rng: source of every choice; the same state gives the same video.
        width: at least 56 for the model to see the shape.
        height: as `width`.
        frames: 4, 6 or 8 are what the model was trained on.
        gradient_share: how often the background has a gradient.
    """
    scheme = pick_scheme(rng, 1)
    shape = rng.choice(SHAPES)
    direction = rng.choice(("left", "right", "up", "down"))
    sideways = direction in ("left", "right")
    shorter = min(width, height)
    radius = rng.uniform(max(9, 0.12 * shorter), 0.3 * shorter)
    start, end = _pick_path(rng, radius, width if sideways else height)
    if direction in ("left", "up"):
        start, end = end, start
    across = rng.uniform(radius + 1, (height if sideways else width) - radius - 1)
    empty = make_canvas(rng, width, height, scheme.background, gradient_share)
    pictures = []
    for index in range(frames):
        along = start + (end - start) * (index / (frames - 1))
        picture = empty.copy()
        place = Place(along, across, radius) if sideways else Place(across, along, radius)
        paint_shape(ImageDraw.Draw(picture), shape, place, scheme.values[0])
        pictures.append(picture)
    answer = f"{name_shape(scheme.names[0], shape)} moves {direction}"
    return Clip(tuple(pictures), ask(rng, VIDEO_QUESTIONS), answer)


def _pick_path(rng: random.Random, radius: float, length: int) -> tuple[float, float]:
    """Two places of the centre, the smaller first, at least half of the free way apart."""
    free = length - 2 * radius - 2
    way = rng.uniform(0.5, 1) * free
    start = radius + 1 + rng.uniform(0, free - way)
    return start, start + way
