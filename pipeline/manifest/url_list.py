"""Lists of URIs: a text file with one in each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.manifest.manifest import Manifest, Probe
from pipeline.manifest.media_names import is_video
from pipeline.manifest.records import records, text_start
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import open_exact
from pipeline.manifest.text_index import index_records
from pipeline.manifest.text_rows import byte_range, read_text
from pipeline.storage import FileInfo, Storage


def probe_urls(storage: Storage, info: FileInfo) -> Probe:
    """Read the list once to find its lines; those with the extension of a video are videos, others images.

    Raises:
        ValueError: it is compressed or UTF-16, with the cure.
    """
    roles: set[str] = set()

    def seen(found: Iterator[tuple[int, bytes | None]]) -> Iterator[tuple[int, bytes | None]]:
        for end, record in found:
            roles.add(_role((record or b"").decode(errors="replace")))
            yield end, record

    with storage.open(info.uri) as source:
        first = text_start(source)
        found = seen(records(source, first, info.size))
        rows, index = index_records(found, first, info.size, [], sample_bytes=0)
    return Probe(pa.schema([(role, pa.string()) for role in sorted(roles)]), rows, index)


def read_urls(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard."""
    place = byte_range(shard)
    with open_exact(storage, manifest.files[shard.file].uri) as source:
        yield from read_text(records(source, place.start, place.stop), manifest, shard, ranges, _parse)


def _parse(record: bytes) -> dict[str, Any]:
    try:
        uri = record.decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is no UTF-8: {error.reason} at byte {error.start + 1}") from error
    return {_role(uri): uri}


def _role(uri: str) -> str:
    return "video" if is_video(uri.strip().partition("?")[0]) else "image"
