"""Shards: fixed ranges of rows of one manifest file, and where a reader finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from pipeline.manifest.manifest import Manifest, ManifestFile, MediaPaths, Offsets, RowGroups, Samples
from pipeline.manifest.pages import PageIndex

_NAME_LENGTH = 60


@dataclass(frozen=True)
class ByteRange:
    """The bytes [start, stop) of a text file; the shard begins `skip` rows into them."""

    start: int
    stop: int
    skip: int


@dataclass(frozen=True)
class Shard:
    """The rows [start, stop) of the manifest's file number `file`.

    `name` is unique in its manifest, safe as a file name, and the same in every manifest as long as the file
    is. Within a file names sort like the rows. With `pages` the rows are pages of documents, and `seek` is
    about the source rows that make them.
    """

    name: str
    file: int
    start: int
    stop: int
    seek: ByteRange | MediaPaths | Samples | None
    pages: PageIndex | None = None

    @property
    def rows(self) -> int:
        """How many rows the shard has."""
        return self.stop - self.start


def shards(manifest: Manifest, shard_rows: int) -> list[Shard]:
    """Cut the manifest into shards of at most `shard_rows` rows, the same for the same files.

    Parquet is cut where row groups end, if one ends within reach: so no row group is decoded twice without
    need, and shards may be up to half smaller.
    """
    if shard_rows < 1:
        raise ValueError(f"shard_rows is {shard_rows}; a shard has at least one row")
    cut: list[Shard] = []
    for number, file in enumerate(manifest.files):
        prefix = _prefix(file)
        for start, stop in _cuts(file, shard_rows):
            name = f"{prefix}-{start:010d}-{stop:010d}"
            if file.pages is None:
                cut.append(Shard(name, number, start, stop, _seek(file, start, stop)))
            else:
                source = file.pages.source(start, stop)
                cut.append(Shard(name, number, start, stop, _seek(file, *source), file.pages.cut(*source)))
    return cut


def _prefix(file: ManifestFile) -> str:
    """The file by name, for people and to sort by, and by what it was when it was opened."""
    written = re.sub(r"[^A-Za-z0-9_]+", "-", file.name).strip("-_")[:_NAME_LENGTH] or "files"
    identity = f"{file.name}\n{file.identity}".encode(errors="surrogateescape")
    return f"{written}-{blake2b(identity, digest_size=6).hexdigest()}"


def _cuts(file: ManifestFile, shard_rows: int) -> Iterator[tuple[int, int]]:
    group_stops = file.index.stops.to_pylist() if isinstance(file.index, RowGroups) else []
    if file.pages is not None:
        group_stops = [file.pages.starts[stop].as_py() for stop in group_stops]
    start = passed = 0
    while start < file.rows:
        stop = min(start + shard_rows, file.rows)
        while passed < len(group_stops) and group_stops[passed] <= stop:
            passed += 1
        if passed and group_stops[passed - 1] > start:
            stop = group_stops[passed - 1]
        yield start, stop
        start = stop


def _seek(file: ManifestFile, start: int, stop: int) -> ByteRange | MediaPaths | Samples | None:
    match file.index:
        case RowGroups():
            return None
        case Offsets(stride, starts, size):
            first, skip = divmod(start, stride)
            behind = -(-stop // stride)
            end = starts[behind].as_py() if behind < len(starts) else size
            return ByteRange(starts[first].as_py(), end, skip)
        case Samples(starts, end):
            behind = starts[stop].as_py() if stop < len(starts) else end
            return Samples(pa.concat_arrays([starts.slice(start, stop - start)]), behind)
        case MediaPaths(paths):
            # A slice would be pickled together with the whole listing: copy it.
            return MediaPaths(pa.concat_arrays([paths.slice(start, stop - start)]))
        case None:
            raise ValueError("this manifest is one for workers, without its index: cut it before")
