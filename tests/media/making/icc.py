"""ICC profiles made by hand: their frame, and one of a press."""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]

# Relative XYZ (D50) of paper, and of cyan, magenta and yellow printed fully, alone and over each other: round
# numbers near those of an offset press. Black ink lets this share of the light through.
_SOLIDS = {
    (0, 0, 0): (0.964, 1.000, 0.825),
    (1, 0, 0): (0.160, 0.230, 0.510),
    (0, 1, 0): (0.320, 0.160, 0.140),
    (0, 0, 1): (0.700, 0.750, 0.080),
    (1, 1, 0): (0.060, 0.045, 0.170),
    (1, 0, 1): (0.080, 0.190, 0.060),
    (0, 1, 1): (0.300, 0.160, 0.025),
    (1, 1, 1): (0.090, 0.090, 0.070),
}
_THROUGH_BLACK = 0.1
# Ink spreads: a dot of 50 % looks like one of so much more.
_DOT_GAIN = 0.16
_WHITE = (0.9642, 1.0, 0.8249)
# What the paper is beside that white: only a proof shows it.
_PAPER = (0.85, 0.88, 0.70)


def profile(space: bytes, tags: dict[bytes, bytes], connection: bytes = b"XYZ ") -> bytes:
    """An ICC profile, version 2.1."""
    at = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, value in tags.items():
        table += name + struct.pack(">II", at + len(body), len(value))
        body += value + bytes(-len(value) % 4)
    kind = b"prtr" if space == b"CMYK" else b"mntr"
    head = struct.pack(">I4xI", at + len(body), 0x02100000) + kind + space + connection + bytes(12) + b"acsp"
    head += bytes(28) + fixed(*_WHITE)
    return head.ljust(128, b"\0") + table + body


def fixed(*values: float) -> bytes:
    """Numbers as s15Fixed16."""
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


@lru_cache(maxsize=1)
def press_profile() -> bytes:
    """A CMYK profile with tables both ways, of a press that prints as Neugebauer has it."""
    forth = _table(4, 3, 7, _encoded(_lab(_grid(7, 4))), _spread(np.linspace(0, 1, 256)))
    # Back: of a fine grid the inks whose print comes nearest.
    fine = _grid(12, 4)
    colours = printed(fine)
    wanted = _grid(7, 3) * [65535 / 65280 * 100, 65535 / 256, 65535 / 256] - [0, 128, 128]
    nearest = [int(((colours - one) ** 2).sum(axis=1).argmin()) for one in wanted]
    back = _table(3, 4, 7, fine[nearest], np.linspace(0, 1, 256))
    return profile(b"CMYK", {b"A2B0": forth, b"B2A0": back, b"wtpt": b"XYZ \0\0\0\0" + fixed(*_PAPER)}, b"Lab ")


def printed(inks: _Array) -> _Array:
    """L*a*b* (D50) of inks (N, 4), 0 to 1."""
    return _lab(_spread(inks))


def _spread(inks: _Array) -> _Array:
    return inks + 4 * _DOT_GAIN * inks * (1 - inks)


def _lab(dots: _Array) -> _Array:
    light = np.zeros((len(dots), 3))
    for solid, xyz in _SOLIDS.items():
        share = np.where(np.array(solid) == 1, dots[:, :3], 1 - dots[:, :3]).prod(axis=1)
        light += share[:, None] * xyz
    light *= 1 - (1 - _THROUGH_BLACK) * dots[:, 3:]
    t = light / _WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    lab: _Array = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    return lab


def _grid(steps: int, axes: int) -> _Array:
    """All points of a grid over the unit cube, the last axis fastest."""
    return np.stack(np.meshgrid(*[np.linspace(0, 1, steps)] * axes, indexing="ij"), axis=-1).reshape(-1, axes)


def _encoded(lab: _Array) -> _Array:
    """L*a*b* as a table of version 2 has it, 0 to 1."""
    return np.clip((lab + np.array([0, 128, 128])) * [65280 / 100, 256, 256] / 65535, 0, 1)


def _table(given: int, gives: int, steps: int, values: _Array, curve: _Array) -> bytes:
    """A lut16Type: each value given goes through the curve, then all through the grid."""
    unit = fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    head = b"mft2\0\0\0\0" + bytes([given, gives, steps, 0]) + unit + struct.pack(">HH", len(curve), 2)
    return head + _words(curve) * given + _words(values) + struct.pack(">HH", 0, 65535) * gives


def _words(values: _Array) -> bytes:
    return np.round(values * 65535).astype(">u2").tobytes()
