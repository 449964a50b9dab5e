"""Animations, orientation and shrinking, and files that are no images or broken ones."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from pipeline.errors import Code, ItemError
from pipeline.media import image as image_module
from pipeline.media.shrink import PixelBudget
from tests.media.made import decode, png, saved

# --- orientation --------------------------------------------------------------------------------------------

RED, GREEN, BLUE, BLACK = [255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]
# What is stored for each orientation, by quadrants (top left, top right, bottom left, bottom right), so that
# the upright picture is RED GREEN / BLUE BLACK. EXIF 2.3, tag 0x0112: where row 0 and column 0 of the stored
# picture lie in the upright one, for example 6: row 0 is the right-hand side, column 0 the top.
STORED = {
    1: (RED, GREEN, BLUE, BLACK),  # top, left
    2: (GREEN, RED, BLACK, BLUE),  # top, right
    3: (BLACK, BLUE, GREEN, RED),  # bottom, right
    4: (BLUE, BLACK, RED, GREEN),  # bottom, left
    5: (RED, BLUE, GREEN, BLACK),  # left, top
    6: (GREEN, BLACK, RED, BLUE),  # right, top
    7: (BLACK, GREEN, BLUE, RED),  # right, bottom
    8: (BLUE, RED, BLACK, GREEN),  # left, bottom
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", list(STORED))
def test_orientation(kind: str, orientation: int) -> None:
    wide, high = (64, 32) if orientation < 5 else (32, 64)  # upright: 64 wide, 32 high
    pixels = np.zeros((high, wide, 3), np.uint8)
    for quadrant, colour in enumerate(STORED[orientation]):
        down, right = divmod(quadrant, 2)
        pixels[down * high // 2 :, right * wide // 2 :] = colour
    pixels[: high // 2, : wide // 2] = STORED[orientation][0]
    pixels[: high // 2, wide // 2 :] = STORED[orientation][1]
    pixels[high // 2 :, : wide // 2] = STORED[orientation][2]
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(Image.fromarray(pixels), kind, exif=exif, **({"quality": 95} if kind != "TIFF" else {}))
    for budget, (w, h) in {PixelBudget(): (64, 32), PixelBudget(max_side=32): (32, 16)}.items():
        upright = decode(data, budget).astype(int)
        assert upright.shape == (h, w, 3)
        corners = [upright[h // 4, w // 4], upright[h // 4, -w // 4], upright[-h // 4, w // 4]]
        for found, colour in zip([*corners, upright[-h // 4, -w // 4]], [RED, GREEN, BLUE, BLACK], strict=True):
            assert np.abs(found - colour).max() < 12


def test_a_broken_exif_block_does_not_cost_the_picture() -> None:
    data = saved(Image.new("RGB", (8, 8), "#00ff00"), exif=b"Exif\0\0II*\0\xff\xff\xff\xff\xff\xff\xff\xff")
    assert decode(data)[0, 0].tolist() == [0, 255, 0]


# --- shrinking ----------------------------------------------------------------------------------------------


def photo(width: int, height: int) -> Image.Image:
    """Smooth waves, sharp edges and a little noise."""
    y, x = np.mgrid[:height, :width]
    waves = 127 + 90 * np.sin(x / 37) * np.cos(y / 23)
    pixels = np.stack([waves, 255 - waves, (x // 50 + y // 70) % 2 * 200], axis=-1)
    noise = np.random.default_rng(0).integers(-10, 10, pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))


def test_a_jpeg_drafted_is_close_to_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(photo(1600, 1200), "JPEG", quality=90)
    drafts: list[tuple[int, int]] = []
    kind = JpegImagePlugin.JpegImageFile
    draft = kind.draft

    def spied(self: Any, *args: Any) -> Any:
        result = draft(self, *args)
        drafts.append(self.size)
        return result

    monkeypatch.setattr(kind, "draft", spied)
    budget = PixelBudget(max_side=200)
    drafted = decode(data, budget).astype(int)
    assert drafts == [(400, 300)]
    monkeypatch.setattr(kind, "draft", lambda self, *args: None)
    whole = decode(data, budget)
    assert drafted.shape == (150, 200, 3)
    assert np.abs(drafted - whole).mean() <= 2


def test_shrinking_averages_and_does_not_skip() -> None:
    # One-pixel stripes: any filter that skips pixels gives black or white, a good one grey.
    stripes = np.zeros((400, 400), np.uint8)
    stripes[:, ::2] = 255
    small = decode(saved(Image.fromarray(stripes)), PixelBudget(max_side=40)).astype(int)
    assert small.shape == (40, 40, 3)
    assert np.abs(small[2:-2, 2:-2] - 127).max() < 8


def test_the_result_is_contiguous_uint8() -> None:
    pixels = decode(saved(Image.new("L", (3, 2))))
    assert pixels.dtype == np.uint8
    assert pixels.shape == (2, 3, 3)
    assert pixels.flags.c_contiguous


# --- refusals -----------------------------------------------------------------------------------------------


def refusal(data: bytes, max_pixels: int = 10**7) -> ItemError:
    with pytest.raises(ItemError) as caught:
        decode(data, max_pixels=max_pixels)
    assert len(caught.value.reason) < 300
    return caught.value


def test_empty() -> None:
    assert refusal(b"").code is Code.EMPTY_FILE


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\n<!DOCTYPE html><html><body>Not found</body></html>", "HTML page"),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", r"object store \(NoSuchKey\)"),
        (b"<?xml version='1.0'?><feed/>", "XML"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b'{"error": "gone"}', "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"),
        (b"nothing to see", "text"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "PostScript"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp42", "MP4"),
        (bytes(100), "only zero bytes"),
        (bytes(range(255, 100, -1)), "no format known"),
    ],
)
def test_what_is_no_image_is_named(data: bytes, name: str) -> None:
    error = refusal(data)
    assert error.code is Code.NOT_MEDIA
    assert re.search(name, error.reason)


@pytest.mark.parametrize(
    "start", [b"", b"<?xml version='1.0'?>\n<!-- made by hand -->\n", b"\xef\xbb\xbf<!DOCTYPE svg>\n"]
)
def test_an_svg_has_its_own_code(start: bytes) -> None:
    error = refusal(start + b"<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>")
    assert error.code is Code.NOT_RASTER
    assert "PNG" in error.reason


def test_a_page_with_a_drawing_in_it_is_a_page() -> None:
    assert "HTML page" in refusal(b"<!doctype html><html><body><svg/></body></html>").reason


@pytest.mark.parametrize(
    "kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "AVIF", "PPM", "ICO", "QOI"]
)
def test_a_file_is_known_by_its_content(kind: str) -> None:
    picture = Image.new("RGB", (64, 64), (200, 100, 50))
    found = decode(saved(picture, kind))[32, 32].astype(int)
    assert np.abs(found - (200, 100, 50)).max() <= (0 if kind in {"PNG", "BMP", "TIFF", "PPM", "QOI"} else 4)


def test_too_large_is_refused_by_the_header_alone() -> None:
    # No pixel data at all follows the header, so decoding would say "truncated".
    head = png(5000, 4000, 8, 2, [])[:60]
    error = refusal(head, max_pixels=19_999_999)
    assert error.code is Code.TOO_LARGE
    assert "20000000" in error.reason
    assert "19999999" in error.reason
    assert refusal(head, max_pixels=20_000_000).code is Code.DECODE_TRUNCATED


def test_what_pillow_itself_finds_too_large() -> None:
    error = refusal(png(40_000, 30_000, 8, 2, []), max_pixels=10**6)
    assert error.code is Code.TOO_LARGE
    assert "1200000000" in error.reason
    assert "1000000" in error.reason


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
@pytest.mark.parametrize("part", [0.25, 0.6])
def test_truncated(kind: str, part: float) -> None:
    data = saved(photo(120, 90), kind)
    decode(data)
    assert refusal(data[: int(len(data) * part)]).code is Code.DECODE_TRUNCATED


def test_a_few_bytes_of_a_jpeg_are_a_truncated_one() -> None:
    assert refusal(saved(photo(120, 90), "JPEG")[:20]).code is Code.DECODE_TRUNCATED


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_corrupt(kind: str) -> None:
    data = bytearray(saved(photo(120, 90), kind))
    middle = len(data) // 3
    data[middle : middle + 200] = bytes(200)
    if kind == "WEBP":
        data[20:40] = b"\xff" * 20
    assert refusal(bytes(data)).code is Code.DECODE_CORRUPT


def test_damaged_bytes_never_raise_anything_else() -> None:
    rnd = np.random.default_rng(1)
    files = [saved(photo(40, 30), kind) for kind in ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")]
    outcomes = {"decoded": 0, "refused": 0}
    for turn in range(420):
        data = bytearray(files[turn % len(files)])
        for at in rnd.integers(0, len(data), 1 + turn % 9):
            data[at] = rnd.integers(0, 256)
        try:
            pixels = decode(bytes(data), PixelBudget(max_side=20))
        except ItemError:
            outcomes["refused"] += 1
        else:
            assert pixels.ndim == 3
            outcomes["decoded"] += 1
    assert min(outcomes.values()) > 20, outcomes


def test_many_threads_at_once() -> None:
    files = {
        colour: saved(Image.new("RGB", (64, 48), (colour, colour, colour)), kind)
        for colour, kind in zip(range(0, 250, 10), ["PNG", "BMP", "GIF", "TIFF", "WEBP"] * 5, strict=True)
    }
    limit, start = Image.MAX_IMAGE_PIXELS, threading.Barrier(8)

    def work(_: int) -> bool:
        start.wait()
        return all(
            np.abs(decode(data, PixelBudget(max_side=32)).astype(int) - colour).max() <= 3
            for colour, data in files.items()
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert limit == Image.MAX_IMAGE_PIXELS


def test_formats_that_run_programs_or_have_no_signature_are_never_tried() -> None:
    assert not {"EPS", "WMF", "TGA", "PCX", "GRIB", "HDF5"} & set(image_module._FORMATS)
