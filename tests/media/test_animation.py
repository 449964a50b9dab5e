"""Animations and pages: which of several pictures is seen."""

import io
from typing import Any

import pytest
from PIL import Image

from tests.media.made import decode, saved

RED, GREEN, BLUE, EMPTY = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255), (9, 9, 9, 0)
LOSSLESS: dict[str, dict[str, Any]] = {
    "GIF": {"disposal": 2},
    "WEBP": {"lossless": True},
    "PNG": {},
    "TIFF": {},
}


def animation(kind: str, *colours: tuple[int, ...], **options: Any) -> bytes:
    mode = "RGB" if all(colour[3] == 255 for colour in colours) else "RGBA"
    frames = [Image.new("RGBA", (8, 8), colour).convert(mode) for colour in colours]
    if mode == "RGBA":  # else encoders drop frames that add nothing
        for number, frame in enumerate(frames):
            frame.putpixel((number, 0), (number, 1, 2, 0))
    data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **{**LOSSLESS[kind], **options})
    with Image.open(io.BytesIO(data)) as check:
        assert check.n_frames == len(colours)
    return data


@pytest.mark.parametrize("kind", list(LOSSLESS))
def test_an_animation_gives_its_first_frame(kind: str) -> None:
    assert decode(animation(kind, RED, GREEN, BLUE))[4, 4].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_frames_that_show_nothing_are_passed_over(kind: str) -> None:
    assert decode(animation(kind, EMPTY, EMPTY, GREEN, BLUE))[4, 4].tolist() == [0, 255, 0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_of_nothing_is_white(kind: str) -> None:
    assert decode(animation(kind, EMPTY, EMPTY))[4, 4].tolist() == [255, 255, 255]


def test_the_picture_for_viewers_without_animation_is_no_frame() -> None:
    assert decode(animation("PNG", RED, GREEN, BLUE, default_image=True))[4, 4].tolist() == [0, 255, 0]


def test_an_empty_first_page_is_a_page() -> None:
    assert decode(animation("TIFF", EMPTY, GREEN))[4, 4].tolist() == [255, 255, 255]
