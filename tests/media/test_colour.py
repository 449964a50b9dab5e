"""Colour profiles made by hand, with the sRGB colours that they mean worked out by arithmetic."""

import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

from tests.media.made import decode, png, saved
from tests.media.making.icc import fixed, profile

# The primaries of sRGB adapted to D50 (IEC 61966-2-1, Bradford), as an ICC profile holds them.
RED, GREEN, BLUE = (0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.7141)


def encoded(linear: float) -> int:
    """The 8-bit sRGB value of linear light 0..1."""
    value = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * value)


def xyz(*values: float) -> bytes:
    return b"XYZ \0\0\0\0" + fixed(*values)


def gamma(value: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(value * 256))


def rgb_profile(red: tuple[float, ...], green: tuple[float, ...], exponent: float) -> bytes:
    curves = {name: gamma(exponent) for name in (b"rTRC", b"gTRC", b"bTRC")}
    return profile(b"RGB ", {b"rXYZ": xyz(*red), b"gXYZ": xyz(*green), b"bXYZ": xyz(*BLUE), **curves})


SWAPPED = rgb_profile(GREEN, RED, 2.0)  # what the file calls red is green, and the other way round
PIXELS = [(255, 0, 0), (0, 255, 0), (200, 100, 50), (255, 255, 255), (0, 0, 0)]
MEANT = [tuple(encoded((value / 255) ** 2) for value in (green, red, blue)) for red, green, blue in PIXELS]


def picture() -> Image.Image:
    return Image.fromarray(np.array([PIXELS], np.uint8))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_a_profile_is_converted_to_srgb(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    found = decode(saved(picture(), kind, icc_profile=SWAPPED, **options))[0].astype(int)
    assert np.abs(found - MEANT).max() <= 1, found
    assert np.abs(decode(saved(picture(), kind, **options))[0].astype(int) - PIXELS).max() == 0


def test_a_jpeg_with_a_profile() -> None:
    data = saved(Image.new("RGB", (32, 32), (200, 100, 50)), "JPEG", quality=98, icc_profile=SWAPPED)
    assert np.abs(decode(data)[16, 16].astype(int) - MEANT[2]).max() <= 4


def test_transparency_is_laid_over_white_whatever_the_profile() -> None:
    data = saved(Image.new("RGBA", (2, 2), (255, 0, 0, 0)), icc_profile=SWAPPED)
    assert decode(data)[0, 0].tolist() == [255, 255, 255]


def test_a_palette_with_a_profile() -> None:
    data = saved(picture().convert("P", palette=Image.Palette.ADAPTIVE), icc_profile=SWAPPED)
    assert np.abs(decode(data)[0].astype(int) - MEANT).max() <= 1


def test_a_grey_profile() -> None:
    linear = profile(b"GRAY", {b"kTRC": gamma(1.0)})
    values = [0, 10, 55, 128, 255]
    expected = [encoded(value / 255) for value in values]
    assert expected[2] == 128  # a fifth of the light is half of the scale
    row = Image.fromarray(np.array([values], np.uint8))
    for form in (row, row.convert("LA")):
        found = decode(saved(form, icc_profile=linear))[0].astype(int)
        assert np.abs(found - np.array(expected)[:, None]).max() <= 1
    deep = png(2, 1, 16, 0, [struct.pack(">2H", 55 * 257, 65535)], (b"iCCP", iccp(linear)))
    assert np.abs(decode(deep)[0, :, 0].astype(int) - [128, 255]).max() <= 1


def iccp(data: bytes) -> bytes:
    import zlib

    return b"p\0\0" + zlib.compress(data)


def cmyk_profile() -> bytes:
    """Any ink but black prints half grey (L* = 128 / 255 of 100), black and all overprints print black."""
    corners = []
    for corner in range(16):  # C is the highest bit
        inks, black = corner >> 1, corner & 1
        lightness = 0 if black else 255 if not inks else 128 if inks in (1, 2, 4) else 0
        corners += [lightness, 128, 128]
    ramp = bytes(range(256))
    unit = fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    table = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + unit + ramp * 4 + bytes(corners) + ramp * 3
    return profile(b"CMYK", {b"A2B0": table}, b"Lab ")


@pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
def test_cmyk_with_a_profile(kind: str) -> None:
    lightness = 128 / 255 * 100
    grey = encoded(((lightness + 16) / 116) ** 3)
    for inks, expected in {(255, 0, 0, 0): grey, (0, 0, 0, 0): 255, (0, 0, 0, 255): 0}.items():
        ink = Image.new("CMYK", (16, 16), inks)
        options = {"quality": 98} if kind == "JPEG" else {}
        found = decode(saved(ink, kind, icc_profile=cmyk_profile(), **options))[8, 8].astype(int)
        assert np.abs(found - expected).max() <= 3, (inks, found)


def test_a_profile_that_is_srgb_changes_nothing() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    assert (decode(saved(Image.fromarray(noise), icc_profile=srgb)) == noise).all()


@pytest.mark.parametrize(
    "broken",
    [b"nonsense", SWAPPED[:200], SWAPPED[:16] + b"CMYK" + SWAPPED[20:], profile(b"GRAY", {b"kTRC": gamma(1)})],
)
def test_a_profile_that_makes_no_sense_does_not_cost_the_picture(broken: bytes) -> None:
    assert (decode(saved(picture(), icc_profile=broken))[0] == PIXELS).all()
