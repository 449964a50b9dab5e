"""Drawings show what their answers say."""

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from demo.draw import Clip, Drawing, draw_shapes, draw_text, draw_video

SEEDS = range(25)


def is_named(pixel: np.ndarray, colour: str) -> bool:
    """Whether a pixel plausibly has the colour, by rules of thumb of this test's own."""
    red, green, blue = (int(channel) for channel in pixel)
    rules = {
        "red": red > 150 and green < 90 and blue < 90,
        "orange": red > 200 and 90 < green < 190 and blue < 80,
        "yellow": red > 220 and green > 200 and blue < 100,
        "green": green > red + 60 and green > blue + 60,
        "blue": blue > red + 80 and blue > green + 80,
        "purple": red > green + 50 and blue > green + 50 and red < 190,
        "pink": red > 220 and 70 < green < 230 and blue > 140,
        "black": max(red, green, blue) < 70,
    }
    return rules[colour]


def mean_colour(image: Image.Image, x: float, y: float) -> np.ndarray:
    """Of the 5 x 5 pixels around a point: JPEG artefacts even out."""
    pixels = np.asarray(image, dtype=float)
    colour: np.ndarray = pixels[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3].mean(axis=(0, 1))
    return colour


@pytest.mark.parametrize("seed", SEEDS)
def test_shapes_have_the_colours_that_the_caption_names_in_its_order(seed: int) -> None:
    drawing = draw_shapes(random.Random(seed), 300, 240)
    words = drawing.answer.replace(",", "").split()
    colours = [after for before, after in pairwise(words) if before in ("a", "an")]
    colours = [colour for colour in colours if colour not in ("row", "column")]
    assert len(colours) == len(drawing.marks)
    for colour, mark in zip(colours, drawing.marks, strict=True):
        assert is_named(mean_colour(drawing.image, mark.x, mark.y), colour), (drawing.answer, colour)


@pytest.mark.parametrize("seed", SEEDS)
def test_shapes_lie_as_the_caption_says(seed: int) -> None:
    drawing = draw_shapes(random.Random(seed), 300, 240)
    marks = drawing.marks
    if "left of" in drawing.answer or "in a row" in drawing.answer:
        assert [mark.x for mark in marks] == sorted(mark.x for mark in marks)
    elif "in a column" in drawing.answer:
        assert [mark.y for mark in marks] == sorted(mark.y for mark in marks)
    elif "above" in drawing.answer:
        assert all(marks[0].y < mark.y for mark in marks[1:])
    else:
        assert len(marks) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_text_has_ink_in_as_many_lines_as_the_answer(seed: int) -> None:
    drawing = draw_text(random.Random(seed), 300, 200, gradient_share=0.0)
    pixels = np.asarray(drawing.image.convert("L")).astype(int)
    background = np.median(pixels)
    for line in range(drawing.answer.count("\n") + 1):
        characters = drawing.answer.split("\n")[line].replace(" ", "")
        first = sum(len(other.replace(" ", "")) for other in drawing.answer.split("\n")[:line])
        middle = int(drawing.marks[first].y)
        inked = (np.abs(pixels[middle - 6 : middle + 7] - background) > 45).any(axis=0)
        assert inked.sum() >= len(characters), drawing.answer


def follow(clip: Clip) -> np.ndarray:
    """The centre (x, y) of what differs from the first frame's corner colour, frame by frame."""
    centres = []
    for frame in clip.frames:
        pixels = np.asarray(frame).astype(int)
        rows, columns = np.nonzero(np.abs(pixels - pixels[0, 0]).sum(axis=2) > 60)
        centres.append((columns.mean(), rows.mean()))
    return np.array(centres)


@pytest.mark.parametrize("seed", range(12))
def test_a_video_moves_as_its_caption_says(seed: int) -> None:
    clip = draw_video(random.Random(seed), 160, 120, 8)
    across, down = follow(clip)[-1] - follow(clip)[0]
    moved = {"left": -across, "right": across, "up": -down, "down": down}
    assert len(clip.frames) == 8
    assert moved[clip.answer.split()[-1]] == max(moved.values()) > 10


@pytest.mark.parametrize("draw", [draw_shapes, draw_text])
def test_the_same_seed_gives_the_same_picture(draw: Callable[..., Drawing]) -> None:
    first, second = (draw(random.Random(5), 200, 150) for _ in range(2))
    other = draw(random.Random(6), 200, 150)
    assert (first.image.tobytes(), first.answer, first.marks) == (
        second.image.tobytes(),
        second.answer,
        second.marks,
    )
    assert first.image.tobytes() != other.image.tobytes()
    assert first.image.size == (200, 150)
