"""Parquet: footers to open it, then the needed columns, a row group at a time, in small batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.manifest.manifest import Manifest, Probe, RowGroups
from pipeline.manifest.parquet_cells import Broken, rows_of
from pipeline.manifest.parquet_footer import check_chunks, row_counts
from pipeline.manifest.rows import build_table
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import Watched, open_exact
from pipeline.storage import FileInfo, Storage

PREFETCH_BYTES = 256 << 20
"""The needed columns of a row group up to this size are fetched at once; those of a larger one in pieces."""

PIECE_BYTES = 8 << 20
BATCH_BYTES = 32 << 20

BOMB_BYTES = 256 << 20
BOMB_RATIO = 1000
"""A row group of more than BOMB_BYTES that says it unpacks to so many times what it takes is not unpacked."""


def probe_parquet(storage: Storage, info: FileInfo) -> Probe:
    """Read the footer, nothing else.

    Raises:
        ValueError: it is no Parquet, or its footer says what cannot be.
    """
    with open_exact(storage, info.uri) as source:
        footer = pq.ParquetFile(source)
        metadata = footer.metadata
        rows = row_counts(metadata, info.size)
        check_chunks(metadata, info.size)
        stops = pa.array(accumulate(rows), pa.int64())
        return Probe(footer.schema_arrow, metadata.num_rows, RowGroups(stops))


def read_parquet(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard. What is damaged is rows with an error."""
    file = manifest.files[shard.file]
    with open_exact(storage, file.uri) as source:
        for start, parts in _cut(_batches(Watched(source), _needed(manifest), ranges), ranges):
            rows, keep = rows_of(manifest, parts)
            yield build_table(manifest, file, start, rows, keep)


def _needed(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys([*manifest.columns.named().values(), *manifest.keep.names]))


def _batches(
    source: Watched, columns: list[str], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, pa.RecordBatch | Broken]]:
    """Yield (first row, batch) of all row groups that the ranges touch, in order."""
    metadata = pq.ParquetFile(source).metadata
    longest = max(stop - start for start, stop in ranges)
    first = 0
    for number in range(metadata.num_row_groups):
        behind = first + metadata.row_group(number).num_rows
        if any(start < behind and stop > first for start, stop in ranges):
            try:
                for batch in _group(source, metadata, number, columns, longest):
                    yield first, batch
                    first += batch.num_rows
                if first < behind:
                    raise ValueError(f"{behind - first:,} rows that its footer speaks of are not in its pages")
            except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
                if source.failed:
                    raise
                reason = str(error) or type(error).__name__
                yield first, Broken(behind - first, f"row group {number} cannot be read: {reason[:300]}")
        first = behind


def _group(
    source: Watched, metadata: Any, number: int, columns: list[str], longest: int
) -> Iterator[pa.RecordBatch]:
    """The needed columns of a row group, in batches of no more rows than the longest range."""
    group = metadata.row_group(number)
    chunks = _chunks(group, columns)
    stored = sum(chunk.total_compressed_size for chunk in chunks)
    decoded = sum(chunk.total_uncompressed_size for chunk in chunks)
    if decoded > max(BOMB_BYTES, BOMB_RATIO * stored):
        raise ValueError(f"{stored:,} bytes unpack to {decoded:,}, as of a decompression bomb")
    in_pieces = stored > PREFETCH_BYTES
    reader = pq.ParquetFile(
        source,
        metadata=metadata,
        # A text that many rows share stays one text in memory.
        read_dictionary=[name for name in columns if _is_text_column(metadata.schema, name)],
        pre_buffer=not in_pieces,
        buffer_size=PIECE_BYTES if in_pieces else 0,
    )
    rows = max(1, min(8192, longest, BATCH_BYTES * group.num_rows // max(1, decoded)))
    yield from reader.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)


def _is_text_column(schema: Any, name: str) -> bool:
    found = (column for column in map(schema.column, range(len(schema))) if column.path == name)
    return any(str(column.logical_type) == "String" for column in found)


def _chunks(group: Any, columns: list[str]) -> list[Any]:
    """The chunks of a row group that the columns are made of."""
    parts = [group.column(i) for i in range(group.num_columns)]
    return [p for p in parts if any(p.path_in_schema.split(".")[0] == c.split(".")[0] for c in columns)]


def _cut(
    batches: Iterator[tuple[int, pa.RecordBatch | Broken]], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, list[pa.RecordBatch | Broken]]]:
    """Yield (first row, its parts) of each range, without copying."""
    wanted = deque(ranges)
    parts: list[pa.RecordBatch | Broken] = []
    for first, batch in batches:
        behind = first + batch.num_rows
        while wanted and wanted[0][0] < behind:
            start, stop = wanted[0]
            begin = max(start, first)
            part = batch.slice(begin - first, min(stop, behind) - begin)
            parts.append(part)
            if stop > behind:
                break
            yield start, parts
            parts = []
            wanted.popleft()
        if not wanted:
            return
    raise EOFError(f"the file has no row {wanted[0][1] - 1}: it has fewer than when it was opened")
