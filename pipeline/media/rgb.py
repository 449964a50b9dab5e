"""Any picture as plain 8-bit RGB, where Pillow's own `convert` would clip, or show hidden colours."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipeline.media.lab import lab_to_rgb

_WHITE = (255, 255, 255)
_DEEP_MODES = {"I;16", "I;16L", "I;16B", "I;16N", "I", "F"}
# TIFF tag 262 (PhotometricInterpretation) with 0: white is zero. Pillow inverts up to 8 bits, not beyond.
_PHOTOMETRIC = 262
# Above 1.0 by what resampling or sharpening overshoots, a float picture is still one of 0..1.
_FLOAT_OVERSHOOT = 1.5


def raw_mode(image: Image.Image) -> str:
    """Return how the file stores its samples, in Pillow's words ("RGB;16B"); ask before loading."""
    for tile in getattr(image, "tile", []):
        args = tile[3]
        found = args if isinstance(args, str) else next((arg for arg in args or () if isinstance(arg, str)), "")
        return str(found)
    return ""


def to_rgb(image: Image.Image, stored: str) -> Image.Image:
    """Return a loaded image as mode RGB: deep greys scaled to 8 bits, transparency laid over white.

    `stored` is what `raw_mode` said before loading. Integers without a known range and floats take the
    smallest usual full range (1.0, 255, 65535, …) that holds their largest value; below 0 becomes 0.
    """
    if image.mode in _DEEP_MODES:
        grey = Image.fromarray(_grey8(image, stored)).convert("RGB")
        key = image.info.get("transparency")
        if isinstance(key, int):
            return _over_white(grey, np.asarray(image) != key)
        return grey
    if image.mode in {"1", "L", "RGB"}:
        key = image.info.get("transparency")
        rgb = image.convert("RGB") if "transparency" not in image.info else _without_key(image).convert("RGB")
        return rgb if key is None else _over_white(rgb, _differs(rgb, key, image.mode, stored))
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        return _pasted_on_white(rgba, rgba.getchannel("A"))
    if image.mode == "LAB":
        return lab_to_rgb(image)
    return image.convert("RGB")


def _without_key(image: Image.Image) -> Image.Image:
    plain = image.copy()
    del plain.info["transparency"]
    return plain


def _differs(
    rgb: Image.Image, key: int | tuple[int, ...] | bytes, mode: str, stored: str
) -> npt.NDArray[np.bool_]:
    """Return which pixels are not of the see-through colour `key`, given in the file's own sample range."""
    samples = [key] if isinstance(key, int) else list(key)
    if stored.endswith(("16B", "16L", "16N")):  # Pillow kept the high byte of each sample
        samples = [sample >> 8 for sample in samples]
    elif mode == "L" and stored in {"L;2", "L;4"}:  # Pillow spread the samples over 0..255, but not the key
        samples = [sample * (85 if stored == "L;2" else 17) for sample in samples]
    return cast(npt.NDArray[np.bool_], (np.asarray(rgb) != np.array(samples)).any(axis=2))


def _over_white(rgb: Image.Image, opaque: npt.NDArray[np.bool_]) -> Image.Image:
    return _pasted_on_white(rgb, Image.fromarray(opaque.astype(np.uint8) * np.uint8(255)))


def _pasted_on_white(picture: Image.Image, mask: Image.Image) -> Image.Image:
    page = Image.new("RGB", picture.size, _WHITE)
    page.paste(picture, mask=mask)
    return page


def _grey8(image: Image.Image, stored: str) -> npt.NDArray[np.uint8]:
    samples: npt.NDArray[Any] = np.asarray(image)
    if image.mode == "F":
        samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    elif stored == "I;32N":
        samples = samples.view(np.uint32)
    full = _full_range(image, stored, float(samples.max(initial=0)))
    scaled = np.clip(samples.astype(np.float32) * np.float32(255.0 / full) + np.float32(0.5), 0, 255)
    grey: npt.NDArray[np.uint8] = scaled.astype(np.uint8)
    if getattr(image, "tag_v2", {}).get(_PHOTOMETRIC) == 0:
        grey = 255 - grey
    return grey


def _full_range(image: Image.Image, stored: str, largest: float) -> float:
    if image.mode.startswith("I;16"):
        return 4095.0 if stored == "I;12" else 65535.0
    if image.mode == "F":
        if largest <= _FLOAT_OVERSHOOT:
            return 1.0
        return next((full for full in (255.0, 65535.0) if largest <= full), largest)
    if image.format == "PPM":  # Pillow has scaled it already
        return 65535.0
    if stored in {"I;16S", "I;16BS"}:
        return 32767.0
    return next(full for full in (255.0, 65535.0, 2.0**31 - 1, 2.0**32) if largest <= full)
