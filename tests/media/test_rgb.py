"""Depths and transparencies whose right 8-bit pixels are known by arithmetic."""

import struct

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from pipeline.media.shrink import PixelBudget
from tests.media.made import WHITE, decode, greys, png, saved, tiff

# --- depths -------------------------------------------------------------------------------------------------

SIXTEEN = [0, 128, 129, 257, 32768, 65278, 65535]
EIGHT = [0, 0, 1, 1, 128, 254, 255]  # round(v / 257)


def test_16_bit_grey_png() -> None:
    assert greys(decode(png(7, 1, 16, 0, [struct.pack(">7H", *SIXTEEN)]))) == EIGHT


def test_16_bit_grey_tiff_and_its_white_is_zero_twin() -> None:
    samples = struct.pack("<7H", *SIXTEEN)
    assert greys(decode(tiff(7, samples, [16], 1))) == EIGHT
    assert greys(decode(tiff(7, samples, [16], 0))) == [255 - grey for grey in EIGHT]


def test_16_bit_big_endian_grey_tiff() -> None:
    assert greys(decode(saved(Image.frombytes("I;16B", (7, 1), struct.pack(">7H", *SIXTEEN)), "TIFF"))) == EIGHT


def test_16_bit_grey_pgm() -> None:
    assert greys(decode(b"P5 7 1 65535\n" + struct.pack(">7H", *SIXTEEN))) == EIGHT


def test_a_dark_16_bit_pgm_stays_dark() -> None:
    assert greys(decode(b"P5 2 1 65535\n" + struct.pack(">2H", 0, 250))) == [0, 1]


def test_12_bit_grey_tiff() -> None:
    # 0, 2048 and 4095 of 0..4095, packed in 12 bits each; the row ends on a whole byte.
    samples = bytes([0x00, 0x08, 0x00, 0xFF, 0xFF, 0xFF])
    assert greys(decode(tiff(4, samples, [12], 1))) == [0, 128, 255, 255]


def test_16_bit_rgb_png_and_tiff() -> None:
    colours = [65535, 0, 32896, 257, 514, 0]
    expected = [[255, 0, 128], [1, 2, 0]]
    assert decode(png(2, 1, 16, 2, [struct.pack(">6H", *colours)]))[0].tolist() == expected
    assert decode(tiff(2, struct.pack("<6H", *colours), [16] * 3, 2))[0].tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0, -3.0, float("nan"), float("inf")], [0, 128, 255, 0, 0, 0]),
        ([0.0, 0.25, 0.5, 0.5, 0.5, 0.5], [0, 64, 128, 128, 128, 128]),
        ([0.0, 0.5, 1.2, 1.0, 1.0, 1.0], [0, 128, 255, 255, 255, 255]),
        ([0.0, 1.0, 100.0, 200.4, 255.0, 2.0], [0, 1, 100, 200, 255, 2]),
        ([0.0, 257.0, 65535.0, 32896.0, 0.0, 0.0], [0, 1, 255, 128, 0, 0]),
    ],
)
def test_float_tiff(values: list[float], expected: list[int]) -> None:
    assert greys(decode(tiff(6, struct.pack("<6f", *values), [32], 1, sample_format=3))) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([-5, 7, 255], [0, 7, 255]), ([0, 257, 65535], [0, 1, 255]), ([0, 2**30, 2**31 - 1], [0, 128, 255])],
)
def test_32_bit_integer_tiff(values: list[int], expected: list[int]) -> None:
    assert greys(decode(tiff(3, struct.pack("<3i", *values), [32], 1, sample_format=2))) == expected


def test_16_bit_signed_tiff() -> None:
    data = tiff(4, struct.pack("<4h", -9, 0, 16384, 32767), [16], 1, sample_format=2)
    assert greys(decode(data)) == [0, 0, 128, 255]


def test_32_bit_unsigned_tiff() -> None:
    assert greys(decode(tiff(2, struct.pack("<2I", 2**31, 2**32 - 1), [32], 1, sample_format=1))) == [128, 255]


def test_1_bit() -> None:
    assert greys(decode(png(8, 1, 1, 0, [bytes([0b10100001])]))) == [255, 0, 255, 0, 0, 0, 0, 255]


def test_4_bit_palette() -> None:
    palette = (b"PLTE", bytes([10, 20, 30, 200, 100, 50]))
    assert decode(png(2, 1, 4, 3, [bytes([0x10])], palette))[0].tolist() == [[200, 100, 50], [10, 20, 30]]


def test_cmyk() -> None:
    # (255 - c)(255 - k) / 255
    ink = Image.frombytes("CMYK", (3, 1), bytes([255, 0, 0, 0, 0, 0, 0, 255, 100, 50, 0, 51]))
    assert decode(saved(ink, "TIFF"))[0].tolist() == [[0, 255, 255], [0, 0, 0], [124, 164, 204]]
    jpeg = decode(saved(Image.new("CMYK", (16, 16), (255, 0, 0, 0)), "JPEG", quality=95))
    assert np.abs(jpeg.astype(int) - [0, 255, 255]).max() <= 3


def test_lab() -> None:
    pixel = decode(saved(Image.new("LAB", (2, 2), (255, 128, 128)), "TIFF"))[0, 0]
    assert pixel.min() >= 250  # L* = 100 is white


def test_lab_by_the_white_that_the_file_names() -> None:
    # L*a*b* of sRGB's red, green and blue under D65 (any colour calculator), in the steps of the file.
    colours = {(136, 80, 67): (255, 0, 0), (224, -86, 83): (0, 255, 0), (82, 79, -108): (0, 0, 255)}
    for (lightness, a, b), expected in colours.items():
        lab = Image.frombytes("LAB", (1, 1), bytes([lightness, a & 255, b & 255]))
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[318] = (0.3127, 0.3290)
        pixel = decode(saved(lab, "TIFF", tiffinfo=tags))[0, 0]
        assert np.abs(pixel.astype(int) - expected).max() < 12, (pixel, expected)


# --- transparency: the hidden colour is red, so any leak shows ----------------------------------------------


def test_rgba_is_laid_over_white() -> None:
    pixels = bytes([255, 0, 0, 0, 255, 0, 0, 255, 0, 0, 0, 51])  # alpha 51 of 255 is a fifth
    assert decode(png(3, 1, 8, 6, [pixels]))[0].tolist() == [WHITE, [255, 0, 0], [204, 204, 204]]


def test_16_bit_rgba() -> None:
    pixels = struct.pack(">8H", 65535, 0, 0, 0, 0, 257, 65535, 65535)
    assert decode(png(2, 1, 16, 6, [pixels]))[0].tolist() == [WHITE, [0, 1, 255]]


def test_grey_with_alpha() -> None:
    assert greys(decode(png(3, 1, 8, 4, [bytes([0, 0, 0, 255, 0, 51])]))) == [255, 0, 204]
    assert greys(decode(png(2, 1, 16, 4, [struct.pack(">4H", 0, 0, 25700, 65535)]))) == [255, 100]


def test_palette_with_alpha() -> None:
    palette = (b"PLTE", bytes([255, 0, 0, 0, 0, 0, 0, 0, 9]))
    assert decode(png(3, 1, 8, 3, [bytes([0, 1, 2])], palette, (b"tRNS", bytes([0, 51, 255]))))[0].tolist() == [
        WHITE,
        [204, 204, 204],
        [0, 0, 9],
    ]
    only_one_hidden = png(2, 1, 8, 3, [bytes([0, 2])], palette, (b"tRNS", bytes([0])))
    assert decode(only_one_hidden)[0].tolist() == [WHITE, [0, 0, 9]]


@pytest.mark.parametrize(
    ("depth", "row", "key", "expected"),
    [
        (8, bytes([7, 8]), 7, [255, 8]),
        (4, bytes([0x23]), 2, [255, 51]),
        (2, bytes([0b01100000]), 1, [255, 170]),
        (1, bytes([0b01000000]), 0, [255, 255]),
        (16, struct.pack(">2H", 300, 25700), 300, [255, 100]),
    ],
)
def test_grey_with_a_transparent_key(depth: int, row: bytes, key: int, expected: list[int]) -> None:
    assert greys(decode(png(2, 1, depth, 0, [row], (b"tRNS", struct.pack(">H", key))))) == expected


def test_rgb_with_a_transparent_key() -> None:
    row = bytes([255, 0, 0, 255, 0, 1])
    assert decode(png(2, 1, 8, 2, [row], (b"tRNS", struct.pack(">3H", 255, 0, 0))))[0].tolist() == [
        WHITE,
        [255, 0, 1],
    ]
    deep = struct.pack(">6H", 0x8000, 0, 0, 0x4000, 0, 0)
    assert decode(png(2, 1, 16, 2, [deep], (b"tRNS", struct.pack(">3H", 0x8000, 0, 0))))[0].tolist() == [
        WHITE,
        [64, 0, 0],
    ]


def test_a_hidden_colour_does_not_bleed_in_when_shrunk() -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[:, :32] = [255, 0, 0, 0]
    pixels[:, 32:] = [0, 0, 255, 255]
    small = decode(saved(Image.fromarray(pixels)), PixelBudget(max_side=16)).astype(int)
    assert (small[..., 0] >= small[..., 1] - 1).all()
    assert (small[..., 0] - small[..., 1] <= 1).all()  # red never exceeds what white brings
