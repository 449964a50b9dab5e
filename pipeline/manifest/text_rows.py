"""Rows out of a text file's records: the ranges asked for, each row parsed by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Parsed:
    """A row's values by column, as far as there are any, and what is wrong with it as a whole."""

    values: Mapping[str, Any]
    problem: str | None = None


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
        yield table_of(manifest, shard, start, [_parse(record, parse) for record in wanted])
        row = stop


def _parse(record: bytes | None, parse: Parse) -> Parsed:
    if record is None:
        return Parsed({}, f"the row has more than {MAX_RECORD_BYTES >> 20} MiB")
    try:
        return Parsed(parse(record))
    except ValueError as error:
        return Parsed({}, str(error))


def table_of(manifest: Manifest, shard: Shard, start: int, parsed: Sequence[Parsed]) -> pa.Table:
    """The canonical table of the rows from `start` on."""
    roles = manifest.columns.named()
    rows: list[RawRow] = []
    kept: list[dict[str, object]] = []
    for one in parsed:
        keep, trouble = _keep(manifest, one.values)
        values = {role: one.values.get(column) for role, column in roles.items()}
        rows.append(RawRow(values, one.problem or trouble))
        kept.append(keep)
    arrays = [pa.array([row.get(field.name) for row in kept], field.type) for field in manifest.keep]
    file = manifest.files[shard.file]
    return build_table(manifest, file, start, rows, keep_array(manifest.keep, arrays, len(rows)))


def _keep(manifest: Manifest, values: Mapping[str, Any]) -> tuple[dict[str, object], str | None]:
    keep: dict[str, object] = {}
    troubles: list[str] = []
    for field in manifest.keep:
        try:
            keep[field.name] = shape(values.get(field.name), field.type)
        except ValueError as error:
            troubles.append(f"column {field.name!r} {error}")
    return keep, "; ".join(troubles) or None
