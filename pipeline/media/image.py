"""An image file's bytes to RGB pixels: first frame, upright, on white, no larger than the budget."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from pipeline.errors import Code, ItemError
from pipeline.media.animation import show_first_visible
from pipeline.media.colour import profile_mode, to_srgb
from pipeline.media.deep import DeepFile, float_rgb
from pipeline.media.exif import exif_orientation, turned
from pipeline.media.heic import heic_formats
from pipeline.media.jpeg_end import completed
from pipeline.media.rgb import raw_mode, to_rgb
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.media.sniff import is_cut_short, looks_like

# Pillow also opens formats that run other programs (EPS), have no signature (TGA), or are not needed.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "JPEG2000", "PPM", "ICO", "QOI")
# A JPEG is decoded to at least this many times the final size: the filter needs more than 1.
_DRAFT_MARGIN = 2
_REDUCING_GAP = 3.0
_JPEG = b"\xff\xd8"
_CURES = {
    "PDF document": "; name its page, as in FILE.pdf#page=1, or give it the column role `document`",
    "PostScript document": "; convert it with ps2pdf, and name its page",
}
_GREYS = {"1", "L", "LA", "I;16", "I;16L", "I;16B", "I;16N", "I", "F"}

Image.init()  # once: opening by an explicit list of formats registers plugins on first use, from any thread


def decode_image(
    data: bytes, *, budget: PixelBudget, max_pixels: int, recover: bool = False, page: int = 1
) -> npt.NDArray[np.uint8]:
    """Decode an image file to uint8 (H, W, 3) sRGB, shrunk to `budget`.

    Of an animation it is the first frame that shows anything, of a TIFF its `page` (from 1). Orientation (EXIF)
    and colour profile are applied, transparency is laid over white, greys deeper than 8 bits keep their full
    range. `max_pixels` bounds width x height as the header says, before pixels are decoded; Pillow's own
    bound (2 x PIL.Image.MAX_IMAGE_PIXELS) holds besides. With `recover` a JPEG that lacks its end is
    accepted if nine tenths of its rows are there (of a progressive one, four of its scans). Thread safe.

    Raises ItemError: EMPTY_FILE, NOT_MEDIA (another kind of file), NOT_RASTER (SVG), TOO_LARGE,
    DECODER_MISSING (HEIC without its extra), DECODE_TRUNCATED (the end of the file is missing) or
    DECODE_CORRUPT. MemoryError: `isolated.py` knows whether that is this file's fault.
    """
    try:
        return _decode(data, budget, max_pixels, page)
    except ItemError as error:
        if not (recover and error.code is Code.DECODE_TRUNCATED and data.startswith(_JPEG)):
            raise
        try:
            whole = completed(data)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - as below; what was wrong before is what to say
            whole = None
        if whole is None:
            raise
    return _decode(whole, budget, max_pixels, page)


def _decode(data: bytes, budget: PixelBudget, max_pixels: int, page: int) -> npt.NDArray[np.uint8]:
    if not data:
        raise ItemError(Code.EMPTY_FILE, "the image file has 0 bytes: fetch or export it again")
    kind = looks_like(data)
    if kind.family in {"video", "audio", "document"}:
        cure = _CURES.get(kind.name, "")
        raise ItemError(Code.NOT_MEDIA, f"expected an image, but this looks like: {kind.name}{cure}")
    if kind.name == "SVG drawing":
        raise ItemError(Code.NOT_RASTER, "an SVG drawing has no pixels of its own: render it to PNG first")
    formats = _FORMATS + heic_formats() if kind.name == "HEIC image" else _FORMATS
    try:
        with Image.open(io.BytesIO(data), formats=formats) as image:
            if page != 1:
                image.seek(page - 1)
            return _pixels(image, data, budget, max_pixels)
    except (ItemError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        found = re.search(r"(\d+) pixels", str(error))
        raise _too_large(found[1] if found else "too many", max_pixels) from error
    except UnidentifiedImageError as error:
        if kind.family != "image":
            raise ItemError(Code.NOT_MEDIA, f"expected an image, but this looks like: {kind.name}") from error
        if kind.name == "JPEG XL image":
            raise ItemError(
                Code.NOT_MEDIA, "JPEG XL images are not supported: convert it to JPEG or PNG"
            ) from error
        if kind.name == "HEIC image" and not heic_formats():
            cure = "pip install 'framescribe[heic]' on every node, or convert it to JPEG"
            raise ItemError(Code.DECODER_MISSING, f"HEIC images need an extra: {cure}") from error
        first = kind.name == "TIFF image" and page == 1
        if first and (floats := float_rgb(data, max_pixels)) is not None:
            return np.asarray(_resized(floats, shrunk_size(*floats.size, budget)))
        raise _damaged(data, kind.name, "its header cannot be read") from error
    except Exception as error:  # Pillow's plugins let about ten exception types out on damaged files
        raise _damaged(data, kind.name, str(error)) from error


def _pixels(image: Image.Image, data: bytes, budget: PixelBudget, max_pixels: int) -> npt.NDArray[np.uint8]:
    width, height = image.size
    if width * height > max_pixels:
        raise _too_large(f"{width}x{height} = {width * height}", max_pixels)
    target = shrunk_size(width, height, budget)
    if image.format in {"JPEG", "MPO"}:
        image.draft(None, (target[0] * _DRAFT_MARGIN, target[1] * _DRAFT_MARGIN))
    show_first_visible(image)
    stored, deep = raw_mode(image), DeepFile.of(image, data)
    image.load()
    # After loading: a TIFF has turned itself upright by then, and forgotten its orientation.
    orientation = exif_orientation(image)
    profile: Any = image.info.get("icc_profile")
    if profile_mode(profile) == "CMYK":
        image = to_srgb(image, profile)
    was_grey = image.mode in _GREYS or stored == "LA;16B"
    upright = _resized((deep and deep.rgb(data)) or to_rgb(image, stored), target)
    if profile_mode(profile) == ("L" if was_grey else "RGB"):
        upright = to_srgb(upright.convert("L") if was_grey else upright, profile).convert("RGB")
    return np.asarray(turned(upright, orientation))


def _resized(picture: Image.Image, target: tuple[int, int]) -> Image.Image:
    if picture.size == target:
        return picture
    return picture.resize(target, Image.Resampling.LANCZOS, reducing_gap=_REDUCING_GAP)


def _too_large(size: str, max_pixels: int) -> ItemError:
    return ItemError(
        Code.TOO_LARGE,
        f"the image has {size} pixels, more than max_pixels={max_pixels}: raise it or shrink the file",
    )


def _damaged(data: bytes, name: str, why: str) -> ItemError:
    why = "".join(c if c.isprintable() else "?" for c in why)[:120]
    if "truncated" in why.lower() or "unexpected end" in why.lower() or is_cut_short(data):
        return ItemError(Code.DECODE_TRUNCATED, f"the {name} ends too early ({why}): fetch it again")
    return ItemError(Code.DECODE_CORRUPT, f"the {name} is damaged ({why}): replace the file")
