"""HEIC with the extra, and what is said without it."""

import io
import sys

import numpy as np
import pillow_heif
import pytest
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.media import heic
from tests.media.made import decode


def made(picture: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    pillow_heif.from_pillow(picture).save(out, quality=95, **options)
    return out.getvalue()


def test_a_heic_is_decoded_upright() -> None:
    picture = Image.new("RGB", (64, 48), (200, 30, 60))
    picture.paste((10, 20, 250), (0, 0, 32, 48))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise: the left half comes to the top
    pixels = decode(made(picture, exif=exif.tobytes()))
    assert pixels.shape == (64, 48, 3)
    assert np.abs(pixels[:28].astype(int) - (10, 20, 250)).max() < 12
    assert np.abs(pixels[36:].astype(int) - (200, 30, 60)).max() < 12


def test_without_the_extra_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(Image.new("RGB", (64, 48)))
    heic._register.cache_clear()
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ItemError) as caught:
        decode(data)
    assert caught.value.code is Code.DECODER_MISSING
    assert "framescribe[heic]" in caught.value.reason


def test_a_damaged_heic_is_not_for_want_of_the_extra() -> None:
    with pytest.raises(ItemError) as caught:
        decode(made(Image.effect_noise((64, 48), 60))[:200])
    assert caught.value.code in {Code.DECODE_TRUNCATED, Code.DECODE_CORRUPT}
