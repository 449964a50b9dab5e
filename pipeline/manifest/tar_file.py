"""WebDataset tars: headers to find the samples, then a shard's samples in a few large reads."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError
from pipeline.manifest.json_types import type_of_all
from pipeline.manifest.jsonl_file import json_object
from pipeline.manifest.manifest import Manifest, Probe, Samples
from pipeline.manifest.media_names import IMAGES, VIDEOS
from pipeline.manifest.records import MAX_RECORD_BYTES
from pipeline.manifest.shard import Shard
from pipeline.manifest.source import open_exact
from pipeline.manifest.tar_entries import Entry, entries
from pipeline.manifest.tar_header import BLOCK, BRIEF
from pipeline.manifest.tar_index import TarIndex, find_index
from pipeline.manifest.tar_rows import IMAGES_OF, JSON, KEY, TEXTS, VIDEO_OF, parsed, reader_of
from pipeline.manifest.tar_samples import Sample, samples
from pipeline.manifest.text_rows import table_of
from pipeline.manifest.window import Window
from pipeline.storage import FileInfo, Storage

AHEAD = 20
"""Headers are read with a 20th of what was skipped before them: fewer requests, for 5 % of the bytes."""

SMALL_BYTES = 1536
"""Where requests come closer than this on average, a tar is read through: so many requests cost more."""

THROUGH_BYTES = 1 << 18

READ_BYTES = 8 << 20
_JSON_SAMPLES = 16
_FEW_REQUESTS = 32
_LARGE_SKIP = 1 << 14
_MAX_EXTENSIONS = 1000


def probe_tar(storage: Storage, info: FileInfo, wants_json: bool) -> Probe:
    """Find a tar's samples: by the index beside it, else by its headers.

    `wants_json`: look into the `json` of the first samples, to know the types of its fields.

    Raises:
        ValueError: it is no tar, or not a whole one, with the cure.
    """
    index = find_index(storage, info)
    objects: list[Any] = []

    def read(extension: str, entry: Entry) -> bytes | None:
        if wants_json and extension == JSON and len(objects) < _JSON_SAMPLES and entry.size <= MAX_RECORD_BYTES:
            objects.append(_object_or_none(window.read(entry.data, entry.size)))
        return None

    with open_exact(storage, info.uri) as source:
        window = Window(source, 0, info.size, HeaderReads())
        found = samples(entries(window, 0), read)
        if index is None:
            index = _walk(found, info.size)
        else:
            deque(islice(found, _JSON_SAMPLES if wants_json else 0), maxlen=0)
    fields = [pa.field(KEY, pa.string()), *_media_fields(index.extensions)]
    kinds = {JSON: type_of_all(objects)}
    fields += [pa.field(name, kinds.get(name) or _type_of(name)) for name in index.extensions]
    return Probe(pa.schema(fields), len(index.samples.starts), index.samples)


class HeaderReads:
    """How much to read at once on the way from header to header."""

    def __init__(self) -> None:
        self._requests = 0
        self._since = 0
        self._through = False

    def __call__(self, offset: int, skipped: int) -> int:
        """Bytes to read at `offset`, where `skipped` bytes before it have not been read."""
        self._requests += 1
        if self._through and skipped > _LARGE_SKIP:
            self._requests, self._since, self._through = 0, offset, False
        elif self._requests >= _FEW_REQUESTS:
            self._through = self._through or offset - self._since < SMALL_BYTES * self._requests
        if self._through:
            return THROUGH_BYTES
        ahead = skipped // AHEAD
        return ahead if ahead >= BLOCK else BRIEF


def read_tar(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard.

    Raises:
        ConfigError: the samples are not where the tar's index says.
    """
    if not isinstance(shard.seek, Samples):
        raise TypeError(f"shard {shard.name} is not of a tar")
    edges = [*shard.seek.starts.to_pylist(), shard.seek.end]
    uri = manifest.files[shard.file].uri
    columns = [*manifest.columns.named().values(), *manifest.keep.names]
    with open_exact(storage, uri) as source:
        for neighbours in _neighbours(ranges):
            first, last = neighbours[0][0] - shard.start, neighbours[-1][1] - shard.start
            window = Window(source, edges[first], edges[last], lambda offset, skipped: READ_BYTES)
            found = samples(entries(window, edges[first]), reader_of(window, columns))
            for start, stop in neighbours:
                rows = _take(found, edges[start - shard.start : stop - shard.start + 1], uri)
                yield table_of(manifest, shard, start, [parsed(sample, columns) for sample in rows])


def _walk(found: Iterator[Sample], size: int) -> TarIndex:
    starts = array("q")
    extensions: dict[str, None] = {}
    end = 0
    for sample in found:
        starts.append(sample.begin)
        end = sample.end
        extensions.update(dict.fromkeys(sample.members))
        if len(extensions) > _MAX_EXTENSIONS:
            raise ValueError(
                f"its members have more than {_MAX_EXTENSIONS} extensions, as a WebDataset has not: "
                "what follows a name's first dot is its column"
            )
    return TarIndex(Samples(pa.array(starts, pa.int64()), min(end, size)), tuple(extensions))


def _media_fields(extensions: Sequence[str]) -> Iterator[pa.Field]:
    if any(f".{name}" in IMAGES for name in extensions):
        yield pa.field(IMAGES_OF, pa.list_(pa.large_binary()))
    if any(f".{name}" in VIDEOS for name in extensions):
        yield pa.field(VIDEO_OF, pa.large_binary())


def _type_of(extension: str) -> pa.DataType:
    return pa.string() if extension in TEXTS else pa.large_binary()


def _object_or_none(data: bytes) -> dict[str, Any] | None:
    try:
        return json_object(data)
    except ValueError:
        return None  # its row will say so


def _neighbours(ranges: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The ranges in groups without gaps."""
    groups: list[list[tuple[int, int]]] = []
    for start, stop in ranges:
        if groups and groups[-1][-1][1] == start:
            groups[-1].append((start, stop))
        else:
            groups.append([(start, stop)])
    return groups


def _take(found: Iterator[Sample], edges: Sequence[int], uri: str) -> list[Sample]:
    """The next samples, each of which has to begin between two neighbouring edges."""
    try:
        taken = list(islice(found, len(edges) - 1))
    except ValueError as error:
        raise ConfigError([f"manifest.uri: {uri}: {error}"]) from error
    begins = [sample.begin for sample in taken]
    fits = [start <= begin < stop for (start, stop), begin in zip(pairwise(edges), begins, strict=False)]
    if len(fits) < len(edges) - 1 or not all(fits):
        raise ConfigError(
            [f"manifest.uri: {uri}: its samples are not where its index says; delete the index beside it"]
        )
    return taken
