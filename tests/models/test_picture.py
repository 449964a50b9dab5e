"""A picture that refers to its pixels is to Pillow, NumPy and pickle what Pillow's own is."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.models.picture import PixelPicture

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        Image.Image.tobytes,
        lambda picture: picture.getpixel((6, 4)),
        lambda picture: picture.convert("RGB").tobytes(),
        lambda picture: picture.convert("L").tobytes(),
        lambda picture: picture.resize((3, 2)).tobytes(),
        lambda picture: picture.crop((1, 1, 4, 4)).tobytes(),
        lambda picture: picture.copy().tobytes(),
        lambda picture: picture.transpose(Image.Transpose.ROTATE_90).tobytes(),
        lambda picture: Image.merge("RGB", picture.split()[::-1]).tobytes(),
        lambda picture: [*picture.size, picture.width, picture.height, picture.mode, *picture.getbands()],
        lambda picture: picture.getexif() == {},
    ],
)
def test_it_gives_what_pillows_own_gives(use: Callable[[Image.Image], Any]) -> None:
    assert np.array_equal(use(PixelPicture(PIXELS)), use(Image.fromarray(PIXELS)))


def test_its_pixels_are_referred_to_until_they_are_looked_at_and_never_changed() -> None:
    pixels = PIXELS.copy()
    pixels.flags.writeable = False  # as Ray's are
    picture = PixelPicture(pixels)
    picture.putpixel((0, 0), (1, 2, 3))
    assert picture.getpixel((0, 0)) == (1, 2, 3)
    assert np.array_equal(pixels, PIXELS)


def test_pickled_it_is_its_pixels_beside_the_pickle() -> None:
    picture = PixelPicture(PIXELS)
    buffers: list[pickle.PickleBuffer] = []
    words = pickle.dumps(picture, protocol=5, buffer_callback=buffers.append)
    assert [len(buffer.raw()) for buffer in buffers] == [5 * 7 * 3]
    assert picture._im is None  # Pillow has made nothing
    got = pickle.loads(words, buffers=buffers)  # noqa: S301
    assert (type(got), got.size) == (PixelPicture, (7, 5))
    assert np.array_equal(np.asarray(got), PIXELS)
