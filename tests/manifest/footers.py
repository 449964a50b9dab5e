"""Footers of Parquet files that lie: numbers of a real one replaced, as Thrift's compact protocol has them."""

from __future__ import annotations

import struct
from pathlib import Path

TAIL = 8
"""Behind a footer: its length (4 bytes, little-endian), and PAR1."""


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol writes it: zigzag, then 7 bits a byte."""
    left = (number << 1 ^ number >> 63) & (1 << 64) - 1
    written = bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes([*written, left])


def replace_in_footer(path: Path, number: int, claim: int, times: int) -> None:
    """Write `claim` wherever the footer says `number`, which has to be there so many times."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-TAIL:-4])
    body, footer = data[: -TAIL - length], data[-TAIL - length : -TAIL]
    assert footer.count(varint(number)) == times
    lying = footer.replace(varint(number), varint(claim))
    path.write_bytes(body + lying + struct.pack("<I", len(lying)) + b"PAR1")
