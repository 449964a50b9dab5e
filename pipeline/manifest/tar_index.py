"""Indexes of tars, in the text format of DALI's `wds2idx`: a tar with one need not be walked through."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pipeline.manifest.manifest import Samples
from pipeline.manifest.tar_entries import padded
from pipeline.manifest.tar_header import BLOCK
from pipeline.storage import FileInfo, Storage

MAX_INDEX_BYTES = 256 << 20

_WIDTHS = {"v1.1": 3, "v1.2": 4}
"""Version → the fields of a member: extension, offset, size, and since 1.2 the name."""


@dataclass(frozen=True)
class TarIndex:
    """Where the samples of a tar begin, and the extensions that their members have."""

    samples: Samples
    extensions: tuple[str, ...]


def find_index(storage: Storage, tar: FileInfo) -> TarIndex | None:
    """Read the index beside a tar: `a.tar.idx` or `a.idx`. None if there is none.

    Raises:
        ValueError: it is no index, or not the index of this tar; with the cure.
    """
    for uri in (f"{tar.uri}.idx", f"{tar.uri.removesuffix('.tar')}.idx"):
        try:
            info = storage.info(uri)
        except FileNotFoundError:
            continue
        cure = f"delete {uri}, or make it again (wds2idx)"
        if info.size > MAX_INDEX_BYTES:
            raise ValueError(f"its index has {info.size:,} bytes; {cure}")
        try:
            return parse_index(storage.read(uri), tar.size)
        except (ValueError, IndexError) as error:
            raise ValueError(f"its index does not fit it: {error}; {cure}") from error
    return None


def parse_index(text: bytes, tar_size: int) -> TarIndex:
    """Read an index: a line for the version and the number of samples, then a line for each sample.

    A sample's line has, for each member, its extension, the offset of its payload and its size, and since
    version 1.2 its name. A sample's headers begin where the payload before them ends.

    Raises:
        ValueError, IndexError: it is none, or points where a tar of this size has nothing.
    """
    head, *lines = text.decode().splitlines()
    version, count = head.split()
    width = _WIDTHS.get(version, 0)
    if not width or int(count) != len(lines):
        raise ValueError(f"it begins with {head[:40]!r} and has {len(lines)} lines of samples")
    starts: list[int] = []
    extensions: dict[str, None] = {}
    end = 0
    for line in lines:
        starts.append(end)
        fields = line.split(" ")
        if len(fields) % width:
            raise ValueError(f"its line {line[:60]!r} is no sample (a name with spaces?)")
        for extension, offset, size in zip(*(fields[part::width] for part in range(3)), strict=True):
            data, length = int(offset), int(size)
            if data < end + BLOCK or data % BLOCK or length < 0 or data + length > tar_size:
                raise ValueError(f"it has {extension[:40]!r} with {length} bytes at byte {data}")
            end = data + padded(length)
            extensions[extension.lower()] = None
    return TarIndex(Samples(pa.array(starts, pa.int64()), min(end, tar_size)), tuple(extensions))
