"""JPEG files that lack their end: how much of the picture is there."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

# The rows, from the top, that must be there.
_ENOUGH = 0.9
# A progressive file has the whole picture at once, then finer and finer. With the first four of the usual ten
# scans (all brightness steps and the coarse half of the detail) it looks like a photo that was compressed hard.
_SCANS_ENOUGH = 4
_END = b"\xff\xd9"
# As good as random, as far as a decoder can tell, and without the markers that start with 0xFF.
_NOISE = bytes(range(1, 254, 7)) * 400


def completed(data: bytes) -> bytes | None:
    """Return a JPEG without its end made whole (what is missing is grey); None where too much is missing.

    Which rows are there is found by decoding twice, with different things in place of what is missing: rows
    that come out alike do not depend on it.
    """
    data = data.rstrip(b"\xff")
    whole = data + _END
    if _is_progressive(data):
        return whole if data.count(b"\xff\xda") > _SCANS_ENOUGH else None
    one, other = _rows(whole), _rows(data + _NOISE + _END)
    differing = np.flatnonzero((one != other).any(axis=(1, 2)))
    rows = len(one) if not len(differing) else int(differing[0])
    return whole if rows >= _ENOUGH * len(one) else None


def _rows(data: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        # The top left of each 8x8 block is enough to tell.
        image.draft("L", (image.width // 8 or 1, image.height // 8 or 1))
        pixels = np.asarray(image)
    return pixels.reshape(*pixels.shape[:2], -1)


def _is_progressive(data: bytes) -> bool:
    at = 2
    while data[at : at + 1] == b"\xff" and at + 4 <= len(data):
        marker = data[at + 1]
        if marker in {0xC0, 0xC1, 0xC2}:
            return marker == 0xC2
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False
