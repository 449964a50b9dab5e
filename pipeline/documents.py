"""The pages of a manifest's documents: counted once for an output, so that its rows are fixed from then on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config import RunConfig
from pipeline.errors import Code, ConfigError, ItemError
from pipeline.manifest import Manifest, read, shards
from pipeline.manifest.pages import NOT_A_DOCUMENT, PageIndex, PageSelection
from pipeline.media.load import MediaLoader
from pipeline.page_uri import page_of
from pipeline.storage import Storage, join

_ROWS_AT_ONCE = 32
_READERS = 8
# Beyond this share of documents that cannot be fetched just now, it is the store that is down, not they.
_MOST_UNFETCHED = 0.05


@dataclass(frozen=True)
class _Document:
    uri: str
    data: bytes | None
    password: str | None


@dataclass(frozen=True)
class PageCounter:
    """Reads documents to count their pages."""

    storage: Storage
    loader: MediaLoader
    max_bytes: int
    max_pages: int

    def count(self, document: _Document) -> int | ItemError:
        """The pages of a document; 0 where it cannot be opened or has too many, as its row will tell when it
        is decoded. The error where it cannot be fetched just now."""
        try:
            data = document.data
            if data is None:
                data = self.storage.fetch(document.uri, self.max_bytes).data
            pages = self.loader.pages(data, document.password)
        except ItemError as error:
            return error if error.code is Code.FETCH_FAILED else 0
        return pages if pages <= self.max_pages else 0


def paged(storage: Storage, config: RunConfig, manifest: Manifest, loader: MediaLoader) -> Manifest:
    """The manifest with a row for each page of its documents.

    Each document is read whole, once for an output and whatever the recipe: the counts are kept in
    `OUTPUT/.documents`, and hold as long as the manifest's own files do. A document that changes afterwards
    keeps its rows.

    Raises:
        ConfigError: `media.document.pages` is no selection, or the store does not answer now.
    """
    if not manifest.has_documents:
        return manifest
    try:
        selection = PageSelection.parse(config.media.document.pages)
    except ValueError as error:
        raise ConfigError([f"media.document.pages: {error}"]) from error
    uri = join(config.output.uri, f".documents/{_key(config, manifest)}.parquet")
    counts = _kept(storage, uri)
    if counts is None:
        counter = PageCounter(storage, loader, config.media.max_bytes, config.media.document.max_pages)
        counts = _counted(counter, manifest)
        _keep(storage, uri, counts)
    files = []
    for file, pages in zip(manifest.files, counts, strict=True):
        index = PageIndex.of(pages, selection)
        files.append(replace(file, rows=index.rows, pages=index))
    return replace(manifest, files=tuple(files))


def _key(config: RunConfig, manifest: Manifest) -> str:
    """Names all that the counts depend on."""
    columns = config.manifest.columns
    bounds = [config.media.max_bytes, config.media.document.max_pages]
    files = [[file.uri, file.rows, file.fingerprint] for file in manifest.files]
    text = json.dumps([files, columns.document, columns.password, bounds])
    return blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _counted(counter: PageCounter, manifest: Manifest) -> list[pa.Int32Array]:
    counts: list[list[int]] = [[] for _ in manifest.files]
    documents = 0
    unfetched: list[ItemError] = []
    with ThreadPoolExecutor(_READERS, "count-pages") as pool:
        for number, rows in _source_rows(counter.storage, manifest):
            found = list(pool.map(lambda one: counter.count(one) if one else NOT_A_DOCUMENT, rows))
            documents += sum(one is not None for one in rows)
            unfetched += [one for one in found if isinstance(one, ItemError)]
            counts[number] += [0 if isinstance(one, ItemError) else one for one in found]
    if len(unfetched) > documents * _MOST_UNFETCHED:
        raise ConfigError(
            [
                f"manifest.uri: {len(unfetched):,} of {documents:,} documents cannot be read now to count "
                f"their pages, such as: {unfetched[0].reason}; try again, or take them out of the manifest"
            ]
        )
    return [pa.array(pages, pa.int32()) for pages in counts]


def _source_rows(storage: Storage, manifest: Manifest) -> Iterator[tuple[int, list[_Document | None]]]:
    """Yield (number of the file, its next rows' documents)."""
    for shard in shards(manifest, 4096):
        starts = range(shard.start, shard.stop, _ROWS_AT_ONCE)
        ranges = [(start, min(start + _ROWS_AT_ONCE, shard.stop)) for start in starts]
        for table in read(storage, manifest, shard, ranges):
            images = table["images"].to_pylist()
            passwords = (
                table["password"].to_pylist() if "password" in table.column_names else [None] * len(images)
            )
            yield shard.file, [_document(*row) for row in zip(images, passwords, strict=True)]


def _document(images: list[dict[str, str | bytes]], password: str | None) -> _Document | None:
    if not images or page_of(str(images[0]["uri"]))[1] != 0:
        return None
    data = images[0]["data"]
    return _Document(page_of(str(images[0]["uri"]))[0], data if isinstance(data, bytes) else None, password)


def _kept(storage: Storage, uri: str) -> list[pa.Int32Array] | None:
    try:
        table = pq.read_table(pa.BufferReader(storage.read(uri)))
    except FileNotFoundError:
        return None
    lists = table["pages"].combine_chunks()
    return [lists[number].values for number in range(len(lists))]


def _keep(storage: Storage, uri: str, counts: list[pa.Int32Array]) -> None:
    offsets = list(chain([0], (len(pages) for pages in counts)))
    for at in range(1, len(offsets)):
        offsets[at] += offsets[at - 1]
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.concat_arrays(counts))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"pages": lists}), sink, compression="zstd")
    storage.put(uri, bytes(sink.getvalue()))
