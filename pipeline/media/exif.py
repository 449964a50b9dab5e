"""Which way up a picture is, as its EXIF block says."""

from __future__ import annotations

from PIL import Image

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def exif_orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 (upright) where there is none or the EXIF block is unreadable."""
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except (SyntaxError, ValueError, TypeError, KeyError, IndexError, OSError, OverflowError):
        return 1  # the pixels are whole, and no orientation is what most files mean
    return found if isinstance(found, int) else 1


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """Return a picture stored in this EXIF orientation upright; one that is no orientation changes nothing."""
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image
