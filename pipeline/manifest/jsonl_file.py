"""JSON lines: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline.manifest.json_types import infer
from pipeline.manifest.manifest import Manifest, Probe
from pipeline.manifest.records import BLOCK_BYTES, records, text_start
from pipeline.manifest.shard import Shard
from pipeline.manifest.text_index import index_records
from pipeline.manifest.text_rows import byte_range, read_text
from pipeline.storage import FileInfo, Storage


def probe_jsonl(storage: Storage, info: FileInfo) -> Probe:
    """Read the file once to find its rows; columns and types are those of its first MiB.

    Raises:
        ValueError: it is no JSONL, with the cure.
    """
    sample: list[bytes] = []
    with storage.open(info.uri) as source:
        first = text_start(source)
        rows, index = index_records(
            records(source, first, info.size), first, info.size, sample, sample_bytes=BLOCK_BYTES
        )
    objects: list[dict[str, Any]] = []
    for record in sample:
        try:
            objects.append(parse_jsonl(record, None))
        except ValueError as error:
            reason = error
    if rows and not objects:
        cause = f" ({reason})" if sample else ""
        raise ValueError(f"none of its first lines is a JSON object{cause}; JSONL has one object in each line")
    names = dict.fromkeys(name for values in objects for name in values)
    schema = pa.schema([(name, infer(values.get(name) for values in objects)) for name in names])
    return Probe(schema, rows, index)


def read_jsonl(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard."""
    used = {*manifest.columns.named().values(), *manifest.keep.names}
    place = byte_range(shard)
    with storage.open(manifest.files[shard.file].uri) as source:
        found = records(source, place.start, place.stop)
        yield from read_text(found, manifest, shard, ranges, partial(parse_jsonl, columns=used))


def parse_jsonl(record: bytes, columns: Collection[str] | None) -> dict[str, Any]:
    """The object of a line, only its `columns` if they are given.

    Raises:
        ValueError: it is no UTF-8, no JSON, no object, or holds what is no text, with the reason.
    """
    try:
        value = json.loads(record.decode())
        if not isinstance(value, dict):
            raise ValueError(f"the line is a JSON {type(value).__name__} where an object belongs")
        wanted = value if columns is None else {name: value[name] for name in columns if name in value}
        if rb"\ud" in record.lower():
            json.dumps(wanted, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"the line is no JSON: {error.msg} at character {error.pos + 1}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is no UTF-8: {error.reason} at byte {error.start + 1}") from error
    except UnicodeEncodeError as error:
        raise ValueError("the line has half a surrogate pair (\\ud…), which is no text") from error
    except RecursionError as error:
        raise ValueError("the line is nested too deeply") from error
    return wanted
