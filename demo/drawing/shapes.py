"""One to three coloured shapes, and the caption that says how they lie."""

import math
import random

from PIL import Image, ImageDraw

from demo.drawing.kinds import Drawing, Mark, label_shape
from demo.drawing.outlines import Place, paint_shape
from demo.drawing.palette import RGB, make_canvas, maybe_jpeg, pick_scheme
from demo.drawing.phrases import CAPTION_QUESTIONS, SHAPES, ask, name_shape

# Half of the smaller pictures are painted at double size and averaged down, for smooth edges.
_SMOOTH_BELOW_PIXELS = 320 * 320
_LAYOUTS = {1: ("single",), 2: ("row", "column"), 3: ("row", "column", "triangle")}


def draw_shapes(
    rng: random.Random, width: int, height: int, *, level: float = 1.0, gradient_share: float = 0.2
) -> Drawing:
    """A picture of `width` x `height` pixels with one to three shapes.

    Args:
        rng: source of every choice; the same state gives the same picture.
        width: at least 56 for the model to see the shapes.
        height: as `width`.
        level: difficulty from 0 to 1, raised during training; below 0.3 there are at most two shapes.
        gradient_share: how often the background has a gradient.
    """
    count = rng.choice((1, 1, 2, 2, 2, 3, 3, 3) if level > 0.3 else (1, 1, 2))
    scheme = pick_scheme(rng, count)
    shapes = [rng.choice(SHAPES) for _ in range(count)]
    layout = "single" if count == 1 else rng.choice(_LAYOUTS[count])
    places = _arrange(rng, layout, count, width, height)
    scale = 2 if rng.random() < 0.5 and width * height < _SMOOTH_BELOW_PIXELS else 1
    image = make_canvas(rng, width * scale, height * scale, scheme.background, gradient_share)
    _paint(rng, image, shapes, scheme.values, [place.scaled(scale) for place in places])
    if scale == 2:
        image = image.reduce(2)
    marks = tuple(
        Mark(label_shape(colour, shape), order, place.x, place.y, place.radius)
        for order, (colour, shape, place) in enumerate(zip(scheme.names, shapes, places, strict=True))
    )
    names = [name_shape(colour, shape) for colour, shape in zip(scheme.names, shapes, strict=True)]
    return Drawing(maybe_jpeg(rng, image), ask(rng, CAPTION_QUESTIONS), _describe(layout, names), marks)


def _cells(layout: str, count: int, width: int, height: int) -> list[tuple[float, float, float, float]]:
    """The box (left, top, right, bottom) that each shape keeps to, in the order the caption names them."""
    if layout == "row":
        return [(i * width / count, 0, (i + 1) * width / count, height) for i in range(count)]
    if layout == "column":
        return [(0, i * height / count, width, (i + 1) * height / count) for i in range(count)]
    if layout == "triangle":
        top = (0, 0, width, height / 2)
        return [top, (0, height / 2, width / 2, height), (width / 2, height / 2, width, height)]
    return [(0, 0, width, height)]


def _arrange(rng: random.Random, layout: str, count: int, width: int, height: int) -> list[Place]:
    """A place in each cell; the shapes of a row or column stay near one common line."""
    line_x = rng.uniform(0.3, 0.7) * width
    line_y = rng.uniform(0.3, 0.7) * height
    wobble = 0.3 * min(width, height) / count
    places = []
    for left, top, right, bottom in _cells(layout, count, width, height):
        room = min(right - left, bottom - top) / 2 - 1
        radius = min(rng.uniform(max(9, 0.35 * room), max(10, 0.95 * room)), room)
        x = rng.uniform(left + radius, right - radius)
        y = rng.uniform(top + radius, bottom - radius)
        if layout == "row":
            y = min(max(line_y + rng.uniform(-wobble, wobble), radius + 1), height - radius - 1)
        if layout == "column":
            x = min(max(line_x + rng.uniform(-wobble, wobble), radius + 1), width - radius - 1)
        places.append(Place(x, y, radius))
    return places


def _paint(
    rng: random.Random,
    image: Image.Image,
    shapes: list[str],
    colours: tuple[RGB, ...],
    places: list[Place],
) -> None:
    draw = ImageDraw.Draw(image)
    for shape, colour, place in zip(shapes, colours, places, strict=True):
        rotation = math.radians(rng.uniform(-7, 7)) if rng.random() < 0.5 else 0.0
        paint_shape(draw, shape, place, colour, rotation)


def _describe(layout: str, names: list[str]) -> str:
    if layout == "single":
        return names[0]
    if layout == "triangle":
        return f"{names[0]} above {names[1]} and {names[2]}"
    if len(names) == 2:
        return f"{names[0]} {'left of' if layout == 'row' else 'above'} {names[1]}"
    return f"{names[0]}, {names[1]} and {names[2]} in a {layout}"
