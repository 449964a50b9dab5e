"""Rows out of a text file's records: the ranges asked for, each row parsed by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline.manifest.json_types import shape
from pipeline.manifest.manifest import Manifest
from pipeline.manifest.records import MAX_RECORD_BYTES
from pipeline.manifest.rows import RawRow, build_table, keep_array
from pipeline.manifest.shard import ByteRange, Shard

Parse = Callable[[bytes], dict[str, Any]]
"""A record → its values by column; raises ValueError that says what is wrong with the record."""


def byte_range(shard: Shard) -> ByteRange:
    """Where the shard of a text file lies in it."""
    if not isinstance(shard.seek, ByteRange):
        raise TypeError(f"shard {shard.name} is not of a text file")
    return shard.seek


def read_text(
    found: Iterator[tuple[int, bytes | None]],
    manifest: Manifest,
    shard: Shard,
    ranges: Sequence[tuple[int, int]],
    parse: Parse,
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range, out of the records of the shard's byte range.

    A record that cannot be parsed is a row with an error.
    """
    row = shard.start - byte_range(shard).skip
    for start, stop in ranges:
        wanted = [record for _, record in islice(found, start - row, stop - row)]
        if len(wanted) != stop - start:
            raise EOFError(f"{manifest.files[shard.file].uri} has fewer rows than when it was opened")
        yield _table(manifest, shard, start, [_parse(record, parse) for record in wanted])
        row = stop


def _parse(record: bytes | None, parse: Parse) -> dict[str, Any] | str:
    if record is None:
        return f"the row has more than {MAX_RECORD_BYTES >> 20} MiB"
    try:
        return parse(record)
    except ValueError as error:
        return str(error)


def _table(manifest: Manifest, shard: Shard, start: int, parsed: list[dict[str, Any] | str]) -> pa.Table:
    roles = manifest.columns.named()
    rows: list[RawRow] = []
    kept: list[dict[str, object]] = []
    for values in parsed:
        if isinstance(values, str):
            rows.append(RawRow({}, values))
            kept.append({})
            continue
        keep, trouble = _keep(manifest, values)
        rows.append(RawRow({role: values.get(column) for role, column in roles.items()}, trouble))
        kept.append(keep)
    arrays = [pa.array([row.get(field.name) for row in kept], field.type) for field in manifest.keep]
    file = manifest.files[shard.file]
    return build_table(manifest, file, start, rows, keep_array(manifest.keep, arrays, len(rows)))


def _keep(manifest: Manifest, values: dict[str, Any]) -> tuple[dict[str, object], str | None]:
    keep: dict[str, object] = {}
    troubles: list[str] = []
    for field in manifest.keep:
        try:
            keep[field.name] = shape(values.get(field.name), field.type)
        except ValueError as error:
            troubles.append(f"column {field.name!r} {error}")
    return keep, "; ".join(troubles) or None
