"""Colour profiles: from a file's own colours to sRGB, which models were trained on."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import cast

import numpy as np
from PIL import Image, ImageCms

# What an ICC profile says its colours are (bytes 16 to 20), and the mode that has them.
_MODES = {b"RGB ": "RGB", b"GRAY": "L", b"CMYK": "CMYK"}
# A profile that moves no colour further than this is sRGB under another name: most files have such a one.
_SAME = 1


def profile_mode(profile: object) -> str | None:
    """Return the mode of the pixels that an ICC profile is for: RGB, L or CMYK; None for no or another one."""
    return _MODES.get(profile[16:20]) if isinstance(profile, bytes) else None


def to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Return an image of mode RGB, L or CMYK as sRGB (mode RGB); unchanged where the profile makes no sense.

    Relative colorimetric with black point compensation: white stays white. A damaged profile, or one for
    another mode, does not cost the picture: viewers ignore it too.
    """
    if profile_mode(profile) != image.mode:
        return image
    transform = _transform(profile, image.mode)
    return image if transform is None else cast(Image.Image, ImageCms.applyTransform(image, transform))


@lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    try:
        transform = ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
        return None
    if mode == "CMYK":
        return transform
    before = _samples(mode)
    after = np.asarray(ImageCms.applyTransform(before, transform)).astype(int)
    moved = np.abs(after - np.asarray(before.convert("RGB")))
    return transform if moved.max() > _SAME else None


def _samples(mode: str) -> Image.Image:
    """Return a picture of all greys, or of colours in steps of 15 along each axis."""
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.arange(0, 256, 15, dtype=np.uint8)
    grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1)
    return Image.fromarray(grid.reshape(len(steps), -1, 3))
