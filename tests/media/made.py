"""Image files made by hand, byte by byte, and what the tests of images ask of them."""

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

from pipeline.media.image import decode_image
from pipeline.media.shrink import PixelBudget

WHITE = [255, 255, 255]


def decode(
    data: bytes, budget: PixelBudget | None = None, max_pixels: int = 10**7, recover: bool = False
) -> np.ndarray:
    return decode_image(data, budget=budget or PixelBudget(), max_pixels=max_pixels, recover=recover)


def saved(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def png(
    width: int, height: int, depth: int, colour: int, rows: list[bytes], *extra: tuple[bytes, bytes]
) -> bytes:
    """A PNG file made by hand: colour 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = [(b"IHDR", head), *extra, (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in chunks)


def tiff(width: int, samples: bytes, bits: list[int], photometric: int, **tags: int) -> bytes:
    """A little-endian, uncompressed TIFF file of one row, made by hand."""
    entries = {256: width, 257: 1, 259: 1, 262: photometric, 277: len(bits), 278: 1, 279: len(samples)}
    entries |= {339: tags["sample_format"]} if "sample_format" in tags else {}
    bits_at = 8 + 2 + 12 * (len(entries) + 2) + 4
    extra = struct.pack(f"<{len(bits)}H", *bits) if len(bits) > 2 else b""
    entries |= {258: bits_at if extra else bits[0], 273: bits_at + len(extra)}
    fields = b"".join(
        struct.pack("<HHII", tag, 4 if tag in {273, 279} else 3, 4 if tag == 258 and extra else 1, value)
        for tag, value in sorted(entries.items())
    )
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + fields + b"\0\0\0\0" + extra + samples


def greys(pixels: np.ndarray) -> list[int]:
    assert (pixels == pixels[..., :1]).all(), "not grey"
    return pixels[0, :, 0].tolist()
