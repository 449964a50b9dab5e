"""Colours, backgrounds that stand off from them, and the canvas they go on."""

import io
import math
import random
from dataclasses import dataclass

import numpy as np
from PIL import Image

RGB = tuple[int, int, int]

# Each name stands for a few reference values; `_jitter` moves them a little more.
COLOURS: dict[str, tuple[RGB, ...]] = {
    "red": ((255, 0, 0), (220, 30, 30), (200, 20, 40)),
    "orange": ((255, 165, 0), (255, 140, 0), (245, 130, 30)),
    "yellow": ((255, 255, 0), (250, 220, 30), (245, 230, 60)),
    "green": ((0, 128, 0), (0, 255, 0), (30, 160, 60), (50, 205, 50)),
    "blue": ((0, 0, 255), (30, 70, 220), (65, 105, 225)),
    "purple": ((128, 0, 128), (130, 40, 170), (148, 0, 211)),
    "pink": ((255, 192, 203), (255, 105, 180), (255, 130, 190)),
    "black": ((0, 0, 0), (25, 25, 25)),
}
COLOUR_NAMES = tuple(COLOURS)
_LEAST_RGB_DISTANCE = 75  # between a shape and its background
_BACKGROUND_TRIES = 4


@dataclass(frozen=True)
class Scheme:
    """Named colours and their exact values, one of each per object, and a background unlike all of them."""

    names: tuple[str, ...]
    values: tuple[RGB, ...]
    background: RGB


def pick_scheme(rng: random.Random, objects: int) -> Scheme:
    """Colours for `objects` shapes; drawn again until a background can be told from every one of them."""
    while True:
        names = tuple(rng.choice(COLOUR_NAMES) for _ in range(objects))
        values = tuple(_shade(rng, name) for name in names)
        for _ in range(_BACKGROUND_TRIES):
            background = pick_background(rng)
            if all(math.dist(background, value) > _LEAST_RGB_DISTANCE for value in values):
                return Scheme(names, values, background)


def pick_background(rng: random.Random) -> RGB:
    """White, light grey, a pastel, mid grey or dark."""
    kind = rng.random()
    if kind < 0.3:
        return (255, 255, 255)
    if kind < 0.55:
        return _grey(rng, 200, 252, spread=5)
    if kind < 0.75:
        return random_colour(rng, 215, 255)
    if kind < 0.87:
        return _grey(rng, 100, 170, spread=6)
    return random_colour(rng, 25, 75)


def random_colour(rng: random.Random, low: int = 0, high: int = 255) -> RGB:
    """Three independent channels, both ends included."""
    return rng.randint(low, high), rng.randint(low, high), rng.randint(low, high)


def make_canvas(
    rng: random.Random, width: int, height: int, background: RGB, gradient_share: float
) -> Image.Image:
    """A plain picture of the background, or in `gradient_share` of the cases one with a soft linear gradient.

    A share of 0 draws no random number for the choice: training then adds its gradients on the GPU.
    """
    if not (gradient_share and rng.random() < gradient_share):
        return Image.new("RGB", (width, height), background)
    strength = rng.randint(6, 22) * rng.choice((-1, 1))
    across = np.linspace(-0.5, 0.5, width)[None, :] * rng.uniform(-1, 1)
    down = np.linspace(-0.5, 0.5, height)[:, None] * rng.uniform(-1, 1)
    shift = ((across + down) * strength)[..., None]
    return Image.fromarray(np.clip(np.asarray(background, np.float32) + shift, 0, 255).astype(np.uint8))


def maybe_jpeg(rng: random.Random, image: Image.Image, share: float = 0.35) -> Image.Image:
    """The picture as JPEG of quality 55-95 would show it, in `share` of the cases."""
    if rng.random() >= share:
        return image
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=rng.randint(55, 95))
    return Image.open(buffer).convert("RGB")


def _shade(rng: random.Random, name: str) -> RGB:
    if rng.random() < 0.7:
        return _jitter(rng, rng.choice(COLOURS[name]), spread=12)
    return rng.choice(COLOURS[name])


def _grey(rng: random.Random, low: int, high: int, spread: int) -> RGB:
    level = rng.randint(low, high)
    return _jitter(rng, (level, level, level), spread)


def _jitter(rng: random.Random, colour: RGB, spread: int) -> RGB:
    red, green, blue = (max(0, min(255, channel + rng.randint(-spread, spread))) for channel in colour)
    return red, green, blue
