"""The pages of a manifest's documents: counted when a run is planned, again only where a document changed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pipeline.config import RunConfig
from pipeline.errors import Code, ConfigError, ItemError
from pipeline.manifest import Manifest, read, shards
from pipeline.manifest.pages import NOT_A_DOCUMENT, PageIndex, PageSelection
from pipeline.media.load import MediaLoader
from pipeline.page_uri import page_of
from pipeline.results.page_counts import PageCounts
from pipeline.storage import Storage

_ROWS_AT_ONCE = 32
_READERS = 8
# Beyond this share of documents that cannot be fetched just now, it is the store that is down, not they.
_MOST_UNFETCHED = 0.05


@dataclass(frozen=True)
class _Document:
    uri: str
    data: bytes | None
    password: str | None = field(repr=False)


@dataclass(frozen=True)
class _Counter:
    storage: Storage
    loader: MediaLoader
    max_bytes: int
    kept: PageCounts

    def count(self, document: _Document | None) -> int | ItemError:
        """The pages of a document; 0 where it cannot be opened, as its one row will tell when it is decoded.
        The error where it cannot be fetched just now, or has another password."""
        if document is None:
            return NOT_A_DOCUMENT
        try:
            if document.data is not None:
                return self.loader.pages(document.data, document.password)
            version = self.storage.version(document.uri)
            pages = self.kept.find(document.uri, version)
            if pages is None:
                fetched = self.storage.fetch(document.uri, self.max_bytes)
                pages = self.loader.pages(fetched.data, document.password)
                self.kept.add(document.uri, fetched.version, pages)
        except ItemError as error:
            return error if error.code in {Code.FETCH_FAILED, Code.PASSWORD_WRONG} else 0
        return pages


def paged(storage: Storage, config: RunConfig, manifest: Manifest, loader: MediaLoader) -> Manifest:
    """The manifest with a row for each page of its documents.

    A document is read whole to count its pages; the count is kept in `output.uri`, whatever the recipe, and
    holds as long as the store tells the same version of the document.

    Raises:
        ConfigError: `media.document.pages` is no selection, or the store does not answer now.
    """
    if not manifest.has_documents:
        return manifest
    try:
        selection = PageSelection.parse(config.media.document.pages)
    except ValueError as error:
        raise ConfigError([f"media.document.pages: {error}"]) from error
    kept = PageCounts.load(storage, config.output.uri)
    counts = _counted(_Counter(storage, loader, config.media.max_bytes, kept), manifest)
    kept.save(storage, config.output.uri)
    most = config.media.document.max_pages
    files = []
    for file, pages in zip(manifest.files, counts, strict=True):
        bounded = pa.array([count if count <= most else 0 for count in pages], pa.int32())
        index = PageIndex.of(bounded, selection)
        files.append(replace(file, rows=index.rows, pages=index))
    return replace(manifest, files=tuple(files))


def _counted(counter: _Counter, manifest: Manifest) -> list[list[int]]:
    """The pages of each row's document, for each file."""
    counts: list[list[int]] = [[] for _ in manifest.files]
    documents = 0
    failed: list[tuple[int, int, _Document, ItemError]] = []
    with ThreadPoolExecutor(_READERS, "count-pages") as pool:
        for number, rows in _source_rows(counter.storage, manifest):
            documents += sum(one is not None for one in rows)
            for one, found in zip(rows, pool.map(counter.count, rows), strict=True):
                if one and isinstance(found, ItemError):
                    failed.append((number, len(counts[number]), one, found))
                counts[number].append(0 if isinstance(found, ItemError) else found)
    unfetched = []
    for number, row, one, error in failed:
        # Now that all are counted: another row may have had the right password, or an earlier run.
        last = counter.kept.last(one.uri)
        counts[number][row] = last or 0
        if last is None and error.code is Code.FETCH_FAILED:
            unfetched.append(error)
    if len(unfetched) > documents * _MOST_UNFETCHED:
        raise ConfigError(
            [
                f"manifest.uri: {len(unfetched):,} of {documents:,} documents cannot be read now to count "
                f"their pages, such as: {unfetched[0].reason}; try again, or take them out of the manifest"
            ]
        )
    return counts


def _source_rows(storage: Storage, manifest: Manifest) -> Iterator[tuple[int, list[_Document | None]]]:
    """Yield (number of the file, its next rows' documents)."""
    for shard in shards(manifest, 4096):
        starts = range(shard.start, shard.stop, _ROWS_AT_ONCE)
        ranges = [(start, min(start + _ROWS_AT_ONCE, shard.stop)) for start in starts]
        for table in read(storage, manifest, shard, ranges):
            rows = table.select([name for name in ("images", "password") if name in table.column_names])
            yield shard.file, [_document(**row) for row in rows.to_pylist()]


def _document(images: list[dict[str, str | bytes]], password: str | None = None) -> _Document | None:
    uri, page = page_of(str(images[0]["uri"])) if images else ("", None)
    if page != 0:
        return None
    data = images[0]["data"]
    return _Document(uri, data if isinstance(data, bytes) else None, password)
