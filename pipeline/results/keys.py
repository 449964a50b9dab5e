"""128-bit keys in order, searched many at once: UUIDs as numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Keys:
    """Keys in ascending order as the two halves of each (uint64). 16 bytes a key."""

    high: _Array
    low: _Array

    @classmethod
    def sorted_from(cls, raw: _Array) -> tuple[Keys, _Array]:
        """The keys of `raw` (n × 16 bytes) in ascending order, and the order that puts them so."""
        halves = raw.reshape(-1, 16).view(">u8")
        high, low = halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)
        order = np.lexsort((low, high))
        return cls(high[order], low[order]), order

    def __len__(self) -> int:
        return len(self.high)

    def find(self, raw: _Array) -> _Array:
        """Where each of these keys (n × 16 bytes) stands; -1 if it is not there."""
        halves = raw.reshape(-1, 16).view(">u8")
        high, low = halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)
        places = np.searchsorted(self.high, high)
        found = np.full(len(high), -1, np.int64)
        open_ = np.arange(len(high))
        while len(open_):
            open_ = open_[places[open_] < len(self.high)]
            open_ = open_[self.high[places[open_]] == high[open_]]
            same = self.low[places[open_]] == low[open_]
            found[open_[same]] = places[open_[same]]
            open_ = open_[~same]
            places[open_] += 1
        return found

    def raw(self) -> _Array:
        """The keys as n × 16 bytes."""
        halves = np.stack([self.high, self.low], axis=1).astype(">u8")
        return halves.view(np.uint8).reshape(-1, 16)


def raw_keys(uuids: Sequence[str]) -> _Array:
    """The bytes (n × 16) of UUIDs in their usual spelling."""
    text = "".join(uuids).replace("-", "")
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 16)


def raw_column(column: pa.ChunkedArray | pa.Array) -> _Array:
    """The bytes (n × 16) of a column of UUIDs as strings, none of them null."""
    plain = pc.replace_substring(column, "-", "")
    return raw_keys(["".join(plain.to_pylist())]) if len(column) else np.empty((0, 16), np.uint8)


def uuid_array(raw: _Array) -> pa.Array:
    """An Arrow column of type `uuid`, which Parquet keeps as such, of n × 16 bytes."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(raw).tobytes())]
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(raw), buffers)
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def raw_array(array: pa.Array) -> _Array:
    """The bytes (n × 16) of an Arrow column of type `uuid`."""
    storage = array.storage
    return np.frombuffer(storage.buffers()[1], np.uint8).reshape(-1, 16)[
        storage.offset : storage.offset + len(storage)
    ]
