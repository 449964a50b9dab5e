"""The cells of Parquet columns: as values by row, each bounded, and what is no text a row's error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.manifest.manifest import Manifest
from pipeline.manifest.paths import column_at
from pipeline.manifest.records import MAX_RECORD_BYTES
from pipeline.manifest.rows import RawRow, keep_array

MAX_ROLE_BYTES = 1 << 20
"""Of an id, a URI or a question in a cell; what is passed through may have MAX_RECORD_BYTES."""


@dataclass(frozen=True)
class Broken:
    """Rows that cannot be read, and why."""

    num_rows: int
    reason: str

    def slice(self, offset: int, length: int) -> Broken:
        """So many of them."""
        return Broken(length, self.reason)


def rows_of(
    manifest: Manifest, parts: Sequence[pa.RecordBatch | Broken]
) -> tuple[list[RawRow], pa.StructArray]:
    """The rows of neighbouring batches, and the columns passed through."""
    rows: list[RawRow] = []
    kept: list[pa.StructArray] = []
    for part in parts:
        if isinstance(part, Broken):
            nulls = [pa.nulls(part.num_rows, field.type) for field in manifest.keep]
            kept.append(keep_array(manifest.keep, nulls, part.num_rows))
            rows += [RawRow({}, part.reason)] * part.num_rows
            continue
        found, keep = _rows(manifest, pa.Table.from_batches([part]))
        rows += found
        kept.append(keep)
    return rows, pa.concat_arrays(kept)


def _rows(manifest: Manifest, table: pa.Table) -> tuple[list[RawRow], pa.StructArray]:
    troubles: list[list[str]] = [[] for _ in range(table.num_rows)]
    values = {role: _values(table, c, troubles) for role, c in manifest.columns.named().items()}
    arrays = [_kept(table, field, troubles) for field in manifest.keep]
    rows = [
        RawRow({role: column[i] for role, column in values.items()}, "; ".join(troubles[i]) or None)
        for i in range(table.num_rows)
    ]
    return rows, keep_array(manifest.keep, arrays, table.num_rows)


def _bounded(table: pa.Table, name: str, troubles: list[list[str]], limit: int) -> pa.ChunkedArray:
    """The column without its texts of more bytes than the limit, whose rows get an error."""
    column = column_at(table, name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or column.nbytes <= limit:
        return column
    chunks: list[pa.Array] = []
    first = 0
    for chunk in column.chunks:
        is_shared = pa.types.is_dictionary(chunk.type)
        sizes = pc.binary_length(chunk.dictionary).take(chunk.indices) if is_shared else pc.binary_length(chunk)
        long = pc.fill_null(pc.greater(sizes, limit), False)
        for row in pc.indices_nonzero(long).to_pylist():
            troubles[first + row].append(f"column {name!r} has more than {limit >> 20} MiB of text")
        if is_shared:
            indices = pc.if_else(long, pa.scalar(None, chunk.indices.type), chunk.indices)
            chunks.append(pa.DictionaryArray.from_arrays(indices, chunk.dictionary))
        else:
            chunks.append(pc.if_else(long, pa.scalar(None, chunk.type), chunk))
        first += len(chunk)
    return pa.chunked_array(chunks, column.type)


def _values(table: pa.Table, column: str, troubles: list[list[str]]) -> list[Any]:
    chunked = _bounded(table, column, troubles, MAX_ROLE_BYTES)
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
    array = _bounded(table, field.name, troubles, MAX_RECORD_BYTES).cast(field.type).combine_chunks()
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
