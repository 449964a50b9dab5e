"""High dynamic range frames (PQ, HLG; BT.2020 colours) as sRGB, so that they look as on an ordinary screen."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from av.video.reformatter import ColorTrc, Interpolation, VideoReformatter

# What white paper is mastered at, in candela/m² (ITU-R BT.2408): it becomes 1.0, before highlights are pressed
# together. The brightest light that is told apart is the usual mastering peak.
_WHITE = 203.0
_PEAK = 1000.0
# Linear up to here, then a curve that reaches 1.0 at the peak ("mobius" of FFmpeg's tonemap filter).
_LINEAR = 0.3
# Linear BT.2020 to BT.709 (ITU-R BT.2087), and BT.2020's luminance (BT.2020 table 4).
_TO_709 = np.array(
    [[1.660491, -0.587641, -0.072850], [-0.124550, 1.132900, -0.008349], [-0.018151, -0.100579, 1.118730]],
    np.float32,
)
_LUMA = np.array([0.2627, 0.6780, 0.0593], np.float32)
_SCALING = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
_SRGB_STEPS = 4096

Light = npt.NDArray[np.float32]


def is_hdr(frame: Any) -> bool:
    """Whether a decoded frame says that its samples are PQ (SMPTE ST 2084) or HLG (ARIB STD-B67)."""
    return frame.color_trc in {ColorTrc.SMPTE2084, ColorTrc.ARIB_STD_B67}


def tone_mapped(scaler: VideoReformatter, frame: Any, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return an HDR frame as uint8 (height, width, 3) sRGB, scaled, not turned.

    White paper (203 nits) becomes a bright grey, 212, since 1,000 nits are white. All of R, G and B are
    scaled by what the brightest of them needs, so hues stay. Transparency is not looked at.
    """
    deep = scaler.reformat(frame, width, height, "rgb48le", interpolation=_SCALING, threads=1)
    plane: Any = deep.planes[0]
    rows = np.frombuffer(plane, np.uint8)[: height * plane.line_size].reshape(height, plane.line_size)
    coded = np.ascontiguousarray(rows[:, : width * 6]).view("<u2").reshape(height, width, 3)
    out = np.empty((height, width, 3), np.uint8)
    step = max(1, 2**18 // width)  # rows at a time: floats of a whole frame would be six times its size
    for top in range(0, height, step):
        light = _pq()[coded[top : top + step]]
        if frame.color_trc == ColorTrc.ARIB_STD_B67:
            light = _hlg_light(coded[top : top + step])
        out[top : top + step] = _encoded(_pressed(np.maximum(light @ _TO_709.T, 0)))
    return out


@cache
def _pq() -> Light:
    """Return light, 1.0 for _WHITE, of each 16-bit PQ value (SMPTE ST 2084, equation 4.1)."""
    m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
    value = np.linspace(0, 1, 65536) ** (1 / m2)
    light = (np.maximum(value - c1, 0) / (c2 - c3 * value)) ** (1 / m1)
    return cast(Light, (light * 10_000 / _WHITE).astype(np.float32))


@cache
def _hlg() -> Light:
    """Return scene light, 0 to 1, of each 16-bit HLG value (ITU-R BT.2100, table 5)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    value = np.linspace(0, 1, 65536)
    return np.where(value <= 0.5, value**2 / 3, (np.exp((value - c) / a) + b) / 12).astype(np.float32)


def _hlg_light(coded: npt.NDArray[np.uint16]) -> Light:
    """Return the light of a display with a peak of _PEAK: its system gamma is 1.2 (BT.2100, note 5f)."""
    scene = _hlg()[coded]
    luma = (scene @ _LUMA)[..., None]
    return cast(Light, scene * luma ** np.float32(0.2) * np.float32(_PEAK / _WHITE))


def _pressed(light: Light) -> Light:
    peak, j = _PEAK / _WHITE, _LINEAR
    a = -j * j * (peak - 1) / (j * j - 2 * j + peak)
    b = (j * j - 2 * j * peak + peak) / max(peak - 1, 1e-6)
    scale = (b * b + 2 * b * j + j * j) / (b - a)
    brightest = light.max(axis=-1, keepdims=True)
    curved = np.where(brightest > j, scale * (brightest + a) / (brightest + b), brightest)
    scaled: Light = light * (curved / np.maximum(brightest, 1e-6)).astype(np.float32)
    return scaled


@cache
def _srgb() -> npt.NDArray[np.uint8]:
    """Return the sRGB byte (IEC 61966-2-1) of each of so many square roots of light: even steps for the eye."""
    light = np.linspace(0, 1, _SRGB_STEPS) ** 2
    coded = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return cast(npt.NDArray[np.uint8], np.rint(coded * 255).astype(np.uint8))


def _encoded(light: Light) -> npt.NDArray[np.uint8]:
    steps = np.rint(np.sqrt(np.minimum(light, 1)) * (_SRGB_STEPS - 1)).astype(np.uint16)
    coded: npt.NDArray[np.uint8] = _srgb()[steps]
    return coded
