"""CIE L*a*b* pictures (TIFF) as sRGB, by the white that their file names."""

from __future__ import annotations

from typing import cast

import numpy as np
from PIL import Image, ImageCms

_WHITE_POINT = 318
# What ImageMagick writes: chromaticities of D65 (IEC 61966-2-1), the white of sRGB itself.
_D65 = (0.3127, 0.3290)
_D65_XYZ = np.array([0.95047, 1.0, 1.08883])
_TO_LINEAR = np.array(
    [
        [3.2404542, -1.5371385, -0.4985314],
        [-0.9692660, 1.8760108, 0.0415560],
        [0.0556434, -0.2040259, 1.0572252],
    ]
)
_ROWS = 256


def lab_to_rgb(image: Image.Image) -> Image.Image:
    """Return a picture of mode LAB as mode RGB; its white is D50, as libtiff has it, or the D65 it names."""
    x, y = (*getattr(image, "tag_v2", {}).get(_WHITE_POINT, ()), 0.0, 0.0)[:2]
    if max(abs(float(x) - _D65[0]), abs(float(y) - _D65[1])) < 0.002:
        return _from_d65(image)
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(lab, srgb, "LAB", "RGB")
    return cast(Image.Image, ImageCms.applyTransform(image, transform))


def _from_d65(image: Image.Image) -> Image.Image:
    stored = np.asarray(image)
    rgb = np.empty(stored.shape, np.uint8)
    for top in range(0, len(stored), _ROWS):
        fy = (stored[top : top + _ROWS, :, 0] * (100 / 255) + 16) / 116
        a, b = (stored[top : top + _ROWS, :, k].view(np.int8) for k in (1, 2))
        f = np.stack([fy + a / 500, fy, fy - b / 200], axis=-1)
        # CIE 15:2004, 8.2.1: the cube, and a line near black.
        xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * _D65_XYZ
        light = np.clip(xyz @ _TO_LINEAR.T, 0, 1)
        coded = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
        rgb[top : top + _ROWS] = np.rint(coded * 255)
    return Image.fromarray(rgb)
