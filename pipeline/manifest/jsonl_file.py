"""JSON lines: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from pipeline.manifest.json_types import infer
from pipeline.manifest.manifest import Manifest, Probe
from pipeline.manifest.paths import value_at
from pipeline.manifest.records import BLOCK_BYTES, records, text_start
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import open_exact
from pipeline.manifest.text_index import index_records
from pipeline.manifest.text_rows import byte_range, read_text
from pipeline.storage import FileInfo, Storage

MAX_DEPTH = 64
"""Deeper nesting is refused, so that nothing that walks through a value has to fear it."""


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
    if not rows:
        return Probe(pa.schema([]), 0, index)
    objects: list[dict[str, Any]] = []
    reason = ""
    for record in sample:
        try:
            objects.append(json_object(record))
        except ValueError as error:
            reason = reason or f" ({error})"
    if sample and _begins_array(sample[0]):
        raise ValueError("it is a JSON array; make it one object a line: jq -c '.[]' IN > OUT")
    if not objects:
        raise ValueError(f"none of its first lines is a JSON object{reason}; JSONL has one in each line")
    names = [name for name in dict.fromkeys(chain.from_iterable(objects)) if _is_text(name)]
    schema = pa.schema([(name, infer(values.get(name) for values in objects)) for name in names])
    return Probe(schema, rows, index)


def read_jsonl(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard."""
    used = {*manifest.columns.named().values(), *manifest.keep.names}
    place = byte_range(shard)
    with open_exact(storage, manifest.files[shard.file].uri) as source:
        found = records(source, place.start, place.stop)
        yield from read_text(found, manifest, shard, ranges, partial(parse_jsonl, columns=used))


def parse_jsonl(record: bytes, columns: Collection[str]) -> dict[str, Any]:
    """The `columns` (names, or dotted paths into objects) of the object of a line, None where it has not.

    Raises:
        ValueError: it is no UTF-8, no JSON, no object, or holds what is no text, with the reason.
    """
    value = json_object(record)
    wanted = {name: value_at(value, name) for name in columns}
    check_text(record, wanted)
    return wanted


def json_object(record: bytes, what: str = "line") -> dict[str, Any]:
    """The JSON object that is the text of a line, or of what else.

    Raises:
        ValueError: it is no UTF-8, no JSON, no object, or nested too deeply, with the reason.
    """
    try:
        value = json.loads(record.decode())
    except json.JSONDecodeError as error:
        raise ValueError(f"the {what} is no JSON: {error.msg} at character {error.pos + 1}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} is no UTF-8: {error.reason} at byte {error.start + 1}") from error
    except RecursionError as error:
        raise ValueError(f"the {what} is nested too deeply") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise ValueError(f"the {what} is no JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"the {what} is a JSON {type(value).__name__} where an object belongs")
    if record.count(b"[") + record.count(b"{") > MAX_DEPTH and not _is_flat(value):
        raise ValueError(f"the {what} is nested too deeply")
    return value


def check_text(record: bytes, values: Mapping[str, Any], what: str = "line") -> None:
    """Refuse values out of a record that cannot be written as text: JSON can spell half a character.

    Raises:
        ValueError: there is such a one.
    """
    if rb"\ud" in record.lower() and not _is_text(json.dumps(values, ensure_ascii=False)):
        raise ValueError(f"the {what} has half a surrogate pair (\\ud…), which is no text")


def _is_flat(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for part in level
            for inner in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
        ]
        if not level:
            return True
    return False


def _is_text(text: str) -> bool:
    """Whether it can be written: JSON can spell lone surrogates, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _begins_array(record: bytes) -> bool:
    if not record.startswith(b"["):
        return False
    try:
        value = json.loads(record)
    except (ValueError, RecursionError):
        return True
    return any(isinstance(part, dict) for part in value)
