"""CSV and TSV: a header row, quotes as in RFC 4180, every value a text."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.manifest.manifest import Format, Manifest, Offsets, Probe
from pipeline.manifest.records import MAX_RECORD_BYTES, records, text_start
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import open_exact
from pipeline.manifest.text_index import index_records
from pipeline.manifest.text_rows import byte_range, read_text
from pipeline.storage import FileInfo, Storage

DELIMITERS = {Format.CSV: ",", Format.TSV: "\t"}


def probe_csv(storage: Storage, info: FileInfo, delimiter: str) -> Probe:
    """Read the file once to find its header and its rows.

    Raises:
        ValueError: it is no CSV, or a quote is never closed (UnclosedQuoteError), with the cure.
    """
    with storage.open(info.uri) as source:
        first = text_start(source)
        found = records(source, first, info.size, delimiter.encode())
        head = next(found, None)
        if head is None:
            return Probe(pa.schema([]), 0, Offsets(1, pa.array([first], pa.int64()), info.size))
        behind, record = head
        if record is None:
            raise ValueError(f"its header row has more than {MAX_RECORD_BYTES >> 20} MiB")
        header = fields_of(record, delimiter)
        rows, index = index_records(found, behind, info.size, [], sample_bytes=0)
    return Probe(pa.schema([(name, pa.string()) for name in header]), rows, index, tuple(header))


def read_csv(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard."""
    file = manifest.files[shard.file]
    delimiter = DELIMITERS[file.format]

    def parse(record: bytes) -> dict[str, Any]:
        fields = fields_of(record, delimiter)
        if len(fields) != len(file.header):
            lines = record.count(b"\n") + 1
            hint = f" and goes on over {lines} lines: is a quote not closed?" if lines > 1 else ""
            raise ValueError(f"the row has {len(fields)} fields, the header has {len(file.header)}{hint}")
        return dict(zip(file.header, fields, strict=True))

    place = byte_range(shard)
    with open_exact(storage, file.uri) as source:
        found = records(source, place.start, place.stop, delimiter.encode())
        yield from read_text(found, manifest, shard, ranges, parse)


def fields_of(record: bytes, delimiter: str) -> list[str]:
    """The fields of one record.

    Raises:
        ValueError: it is no UTF-8 or no CSV, with the reason.
    """
    if csv.field_size_limit() < MAX_RECORD_BYTES:
        csv.field_size_limit(MAX_RECORD_BYTES)  # for the whole process, which only gets more lenient
    try:
        return next(csv.reader([record.decode()], delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"the row is no CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the row is no UTF-8: {error.reason} at byte {error.start + 1}") from error
