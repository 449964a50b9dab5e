"""Colours of 16 bits and floats: each sample is rounded to the nearest of 256 steps."""

import struct

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import Code, ItemError
from tests.media.made import decode, png

STEPS = [0, 127, 128, 129, 255, 256, 257, 385, 386, 32639, 32768, 65406, 65407, 65535]
# The nearest of k * 257, worked out by hand.
NEAREST = [0, 0, 0, 1, 1, 1, 1, 1, 2, 127, 128, 254, 255, 255]


def row(*samples: int) -> bytes:
    return struct.pack(f">{len(samples)}H", *samples)


def test_16_bit_rgb_is_rounded_not_cut() -> None:
    data = png(len(STEPS), 1, 16, 2, [row(*[s for step in STEPS for s in (step, 65535 - step, step)])])
    pixels = decode(data)[0]
    assert pixels[:, 0].tolist() == pixels[:, 2].tolist() == NEAREST
    assert pixels[:, 1].tolist() == [255 - step for step in NEAREST]


def test_a_see_through_colour_is_compared_with_all_16_bits() -> None:
    data = png(2, 1, 16, 2, [row(256, 0, 0, 257, 0, 0)], (b"tRNS", row(257, 0, 0)))
    assert decode(data)[0].tolist() == [[1, 0, 0], [255, 255, 255]]


def test_16_bit_transparency_is_laid_over_white() -> None:
    rgba = png(3, 1, 16, 6, [row(0, 0, 65535, 65535, 0, 0, 65535, 0, 0, 0, 0, 32768)])
    assert decode(rgba)[0].tolist() == [[0, 0, 255], [255, 255, 255], [127, 127, 127]]
    grey = png(2, 1, 16, 4, [row(1000, 65535, 7, 0)])
    assert decode(grey)[0].tolist() == [[4, 4, 4], [255, 255, 255]]


def test_16_bit_turns_with_its_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    data = png(
        2, 1, 16, 2, [row(65535, 0, 0, 0, 0, 65535)], (b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
    )
    assert decode(data)[0].tolist() == [[0, 0, 255], [255, 0, 0]]


def tiff(width: int, height: int, bits: int, sample_format: int, samples: bytes, **tags: int) -> bytes:
    """A little-endian TIFF of three samples a pixel, made by hand; `planar` 2 has one strip for each."""
    planar, orientation = tags.get("planar", 1), tags.get("orientation", 1)
    strips = 3 if planar == 2 else 1
    head = 8 + 2 + 12 * 12 + 4
    at = {"bits": head, "offsets": head + 6, "counts": head + 18, "format": head + 30, "data": head + 36}
    size = len(samples) // strips
    entries = [
        (256, 3, 1, width), (257, 3, 1, height), (258, 3, 3, at["bits"]), (259, 3, 1, 1), (262, 3, 1, 2),
        (273, 4, strips, at["offsets"] if strips > 1 else at["data"]), (274, 3, 1, orientation),
        (277, 3, 1, 3), (278, 3, 1, height), (279, 4, strips, at["counts"] if strips > 1 else size),
        (284, 3, 1, planar), (339, 3, 3, at["format"]),
    ]  # fmt: skip
    body = struct.pack("<3H", bits, bits, bits)
    body += struct.pack("<3I", *(at["data"] + k * size for k in range(3)))
    body += struct.pack("<3I", size, size, size) + struct.pack("<3H", *[sample_format] * 3)
    fields = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + fields + b"\0\0\0\0" + body + samples


def test_16_bit_tiff_in_planes() -> None:
    data = tiff(2, 1, 16, 1, struct.pack("<6H", 65535, 386, 0, 128, 129, 65535), planar=2)
    assert decode(data)[0].tolist() == [[255, 0, 1], [2, 0, 255]]


def test_16_bit_tiff_turns_with_its_orientation() -> None:
    data = tiff(2, 1, 16, 1, struct.pack("<6H", 65535, 0, 0, 0, 0, 65535), orientation=6)
    assert decode(data).tolist() == [[[255, 0, 0]], [[0, 0, 255]]]


def test_float_colours() -> None:
    values = [1.0, 0.5, 0.0, 0.25, -3.0, float("nan")]
    data = tiff(2, 1, 32, 3, struct.pack("<6f", *values))
    assert decode(data)[0].tolist() == [[255, 128, 0], [64, 0, 0]]
    data = tiff(2, 1, 32, 3, struct.pack("<6f", 255, 100, 0, 1, 2, 3))
    assert decode(data)[0].tolist() == [[255, 100, 0], [1, 2, 3]]


def test_float_colours_are_bounded_before_they_are_decoded() -> None:
    data = tiff(60000, 60000, 32, 3, struct.pack("<6f", *[0.5] * 6))
    with pytest.raises(ItemError) as caught:
        decode(data)
    assert caught.value.code is Code.TOO_LARGE


def test_damage_to_deep_files_has_a_code() -> None:
    rows = [np.random.default_rng(0).integers(0, 65536, 300).astype(">u2").tobytes() for _ in range(50)]
    whole = png(100, 50, 16, 2, rows)
    assert decode(whole).shape == (50, 100, 3)
    with pytest.raises(ItemError) as caught:
        decode(whole[: len(whole) // 2])
    assert caught.value.code is Code.DECODE_TRUNCATED
    floats = tiff(20, 10, 32, 3, bytes(20 * 10 * 12))
    assert decode(floats).shape == (10, 20, 3)
    with pytest.raises(ItemError) as caught:
        decode(floats[:-1])
    assert caught.value.code is Code.DECODE_TRUNCATED
