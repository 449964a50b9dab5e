"""Parquet: footers to open it, then the needed columns, a row group at a time, in small batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.manifest.manifest import Manifest, Probe, RowGroups
from pipeline.manifest.paths import column_at
from pipeline.manifest.rows import RawRow, build_table, keep_array
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import open_exact
from pipeline.storage import FileInfo, Storage

PREFETCH_BYTES = 256 << 20
"""The needed columns of a row group up to this size are fetched at once; those of a larger one in pieces."""

PIECE_BYTES = 8 << 20
BATCH_BYTES = 32 << 20


def probe_parquet(storage: Storage, info: FileInfo) -> Probe:
    """Read the footer, nothing else.

    Raises:
        ValueError: it is no Parquet.
    """
    with open_exact(storage, info.uri) as source:
        footer = pq.ParquetFile(source)
        groups = range(footer.metadata.num_row_groups)
        stops = accumulate(footer.metadata.row_group(group).num_rows for group in groups)
        index = RowGroups(pa.array(stops, pa.int64()))
        return Probe(footer.schema_arrow, footer.metadata.num_rows, index)


def read_parquet(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard."""
    file = manifest.files[shard.file]
    with open_exact(storage, file.uri) as source:
        for start, table in _cut(_batches(source, _needed(manifest), ranges), ranges):
            rows, keep = _rows(manifest, table)
            yield build_table(manifest, file, start, rows, keep)


def _needed(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys([*manifest.columns.named().values(), *manifest.keep.names]))


def _batches(
    source: Any, columns: list[str], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (first row, batch) of all row groups that the ranges touch, in order."""
    metadata = pq.ParquetFile(source).metadata
    first = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        behind = first + group.num_rows
        if any(start < behind and stop > first for start, stop in ranges):
            stored, decoded = _bytes(group, columns)
            in_pieces = stored > PREFETCH_BYTES
            reader = pq.ParquetFile(
                source,
                metadata=metadata,
                pre_buffer=not in_pieces,
                buffer_size=PIECE_BYTES if in_pieces else 0,
            )
            size = max(1, min(8192, BATCH_BYTES * group.num_rows // max(1, decoded)))
            for batch in reader.iter_batches(size, row_groups=[number], columns=columns, use_threads=False):
                yield first, batch
                first += batch.num_rows
        first = behind


def _bytes(group: Any, columns: list[str]) -> tuple[int, int]:
    """Bytes of the columns in a row group: stored, and decoded."""
    parts = [group.column(i) for i in range(group.num_columns)]
    needed = [p for p in parts if any(p.path_in_schema.split(".")[0] == c.split(".")[0] for c in columns)]
    return sum(p.total_compressed_size for p in needed), sum(p.total_uncompressed_size for p in needed)


def _cut(
    batches: Iterator[tuple[int, pa.RecordBatch]], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield (first row, table) of each range, without copying."""
    wanted = deque(ranges)
    parts: list[pa.RecordBatch] = []
    for first, batch in batches:
        behind = first + batch.num_rows
        while wanted and wanted[0][0] < behind:
            start, stop = wanted[0]
            begin = max(start, first)
            parts.append(batch.slice(begin - first, min(stop, behind) - begin))
            if stop > behind:
                break
            yield start, pa.Table.from_batches(parts)
            parts = []
            wanted.popleft()
        if not wanted:
            return
    raise EOFError(f"the file has no row {wanted[0][1] - 1}: it has fewer than when it was opened")


def _rows(manifest: Manifest, table: pa.Table) -> tuple[list[RawRow], pa.StructArray]:
    troubles: list[list[str]] = [[] for _ in range(table.num_rows)]
    values = {role: _values(table, c, troubles) for role, c in manifest.columns.named().items()}
    arrays = [_kept(table, field, troubles) for field in manifest.keep]
    rows = [
        RawRow({role: column[i] for role, column in values.items()}, "; ".join(troubles[i]) or None)
        for i in range(table.num_rows)
    ]
    return rows, keep_array(manifest.keep, arrays, table.num_rows)


def _values(table: pa.Table, column: str, troubles: list[list[str]]) -> list[Any]:
    chunked = column_at(table, column)
    try:
        return list(chunked.to_pylist())
    except UnicodeDecodeError:
        return [_value(scalar, column, trouble) for scalar, trouble in zip(chunked, troubles, strict=True)]


def _value(scalar: pa.Scalar, column: str, trouble: list[str]) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        trouble.append(f"column {column!r} has text that is no UTF-8")
        return None


def _kept(table: pa.Table, field: pa.Field, troubles: list[list[str]]) -> pa.Array:
    array = column_at(table, field.name).cast(field.type).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, field.type)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        bad = [not _is_valid(array.slice(i, 1)) for i in range(len(array))]
        for trouble, is_bad in zip(troubles, bad, strict=True):
            if is_bad:
                trouble.append(f"column {field.name!r} has text that is no UTF-8")
        return pa.concat_arrays(
            [pa.nulls(1, field.type) if is_bad else array.slice(i, 1) for i, is_bad in enumerate(bad)]
        )
    return array


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
