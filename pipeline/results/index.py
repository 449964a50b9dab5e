"""The cache's index: which result row answers an item, and which media an unread object holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.results.keys import Keys, raw_array, raw_column, raw_keys, uuid_array
from pipeline.results.layout import PUT_ASIDE, SHARD, name_in
from pipeline.storage import FileInfo, Storage, join

_Array = np.ndarray[Any, Any]
ANSWERS = "_index/answers.parquet"
MEDIA = "_index/media.parquet"
READERS = 8


@dataclass(frozen=True)
class Place:
    """A row of a result file."""

    uri: str
    position: int


@dataclass(frozen=True)
class Index:
    """The answers of one recipe's result files, `folder/files[file][position]` for each key.

    An item that several rows have is there several times, since any of their files may go. 24 bytes a row and
    32 an object version; `covered` tells which version of which file is in it.
    """

    folder: str
    files: list[str]
    covered: dict[str, str]
    items: Keys
    file: _Array
    position: _Array
    versions: Keys
    media: _Array

    @classmethod
    def load(cls, storage: Storage, folder: str) -> Index:
        """The index as it was saved, brought up to what the folder's result files are now.

        Raises:
            OSError: a result file cannot be read.
        """
        there = {name: version_of(info) for name, info in result_files(storage, folder)}
        saved = _saved(storage, folder)
        fresh = [name for name, version in there.items() if saved.covered.get(name) != version]
        with ThreadPoolExecutor(READERS) as pool:
            found = list(pool.map(lambda name: _entries(storage, join(folder, name)), fresh))
        return saved.without(name for name in saved.files if saved.covered.get(name) != there.get(name)).plus(
            {name: there[name] for name in fresh}, found
        )

    def find(self, uuids: Sequence[str]) -> list[Place | None]:
        """Where each item uuid is answered."""
        places = self.items.find(raw_keys(uuids)).tolist()
        return [None if p < 0 else self._place(p) for p in places]

    def find_media(self, versions: Sequence[str]) -> list[str | None]:
        """The media uuid of each object version."""
        places = self.versions.find(raw_keys(versions)).tolist()
        return [None if p < 0 else _spelled(self.media[p]) for p in places]

    def _place(self, entry: int) -> Place:
        return Place(join(self.folder, self.files[self.file[entry]]), int(self.position[entry]))

    def redundant(self, names: Iterable[str]) -> list[str]:
        """Those of the files whose every answer stands in another file as well."""
        candidates = [name for name in names if name in self.covered]
        rest = self.without(candidates)
        keys = self.items.raw()
        numbers = {name: number for number, name in enumerate(self.files)}
        return [name for name in candidates if (rest.items.find(keys[self.file == numbers[name]]) >= 0).all()]

    def without(self, names: Iterable[str]) -> Index:
        """The index without the answers of these files. What is known of objects stays true."""
        gone = set(names)
        if not gone:
            return self
        numbers = np.array([i for i, name in enumerate(self.files) if name in gone], np.int32)
        keep = ~np.isin(self.file, numbers)
        left = {name: version for name, version in self.covered.items() if name not in gone}
        items = Keys(self.items.high[keep], self.items.low[keep])
        return Index(
            self.folder,
            self.files,
            left,
            items,
            self.file[keep],
            self.position[keep],
            self.versions,
            self.media,
        )

    def plus(self, covered: dict[str, str], entries: Sequence[_Entries]) -> Index:
        """The index with the answers of files that it does not have."""
        if not covered:
            return self
        first = len(self.files)
        numbers = [np.full(len(e.items), first + i, np.int32) for i, e in enumerate(entries)]
        items, order = Keys.sorted_from(np.concatenate([self.items.raw(), *(e.items for e in entries)]))
        media = np.concatenate([self.media, *(e.media for e in entries)])
        versions, by_version = Keys.sorted_from(
            np.concatenate([self.versions.raw(), *(e.versions for e in entries)])
        )
        once = _first_of_each(versions)
        return Index(
            self.folder,
            [*self.files, *covered],
            {**self.covered, **covered},
            items,
            np.concatenate([self.file, *numbers])[order],
            np.concatenate([self.position, *(e.positions for e in entries)])[order],
            Keys(versions.high[once], versions.low[once]),
            media[by_version][once],
        )

    def save(self, storage: Storage) -> None:
        """Put the index into the folder as two Parquet files, each whole or not at all."""
        names = pa.array(self.files, pa.string())
        answers = {
            "item_uuid": uuid_array(self.items.raw()),
            "file": pa.DictionaryArray.from_arrays(pa.array(self.file, pa.int32()), names),
            "position": pa.array(self.position, pa.int32()),
        }
        covered = {"framescribe.covered": json.dumps(self.covered)}
        storage.put(join(self.folder, ANSWERS), _parquet(pa.table(answers).replace_schema_metadata(covered)))
        media = {"version": uuid_array(self.versions.raw()), "media_uuid": uuid_array(self.media)}
        storage.put(join(self.folder, MEDIA), _parquet(pa.table(media)))


@dataclass(frozen=True)
class _Entries:
    """What one result file adds: answered items with their rows, object versions with their media."""

    items: _Array
    positions: _Array
    versions: _Array
    media: _Array


def result_files(storage: Storage, folder: str) -> Iterator[tuple[str, FileInfo]]:
    """The finished shards of a recipe's folder, retired ones too, by their names in it."""
    for info in storage.find(folder):
        name = name_in(folder, info.uri)
        if SHARD.fullmatch(name) or PUT_ASIDE.fullmatch(name):
            yield name, info


def version_of(info: FileInfo) -> str:
    """A text that changes when the file does."""
    return f"{info.size}:{info.etag or info.mtime}"


def _saved(storage: Storage, folder: str) -> Index:
    nothing = np.empty((0, 16), np.uint8)
    none = Keys.sorted_from(nothing)[0]
    empty = Index(folder, [], {}, none, np.empty(0, np.int32), np.empty(0, np.int32), none, nothing)
    try:
        answers = pq.ParquetFile(pa.BufferReader(storage.read(join(folder, ANSWERS))))
        media = pq.ParquetFile(pa.BufferReader(storage.read(join(folder, MEDIA))))
    except FileNotFoundError:
        return empty
    covered = json.loads(answers.schema_arrow.metadata[b"framescribe.covered"])
    numbers = {name: number for number, name in enumerate(covered)}
    count, known = answers.metadata.num_rows, media.metadata.num_rows
    items, versions = np.empty((count, 16), np.uint8), np.empty((known, 16), np.uint8)
    file, position = np.empty(count, np.int32), np.empty(count, np.int32)
    row = 0
    for batch in answers.iter_batches(1 << 20):
        rows = slice(row, row := row + len(batch))
        items[rows] = raw_array(batch["item_uuid"])
        names = batch["file"]
        to_number = np.array([numbers.get(name, -1) for name in names.dictionary.to_pylist()], np.int32)
        file[rows] = to_number[names.indices.to_numpy()]
        position[rows] = batch["position"].to_numpy()
    held = np.empty((known, 16), np.uint8)
    row = 0
    for batch in media.iter_batches(1 << 20):
        rows = slice(row, row := row + len(batch))
        versions[rows] = raw_array(batch["version"])
        held[rows] = raw_array(batch["media_uuid"])
    halves, by_version = items.view(">u8"), versions.view(">u8")
    return Index(
        folder,
        list(covered),
        covered,
        Keys(halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64)),
        file,
        position,
        Keys(by_version[:, 0].astype(np.uint64), by_version[:, 1].astype(np.uint64)),
        held,
    )


def _entries(storage: Storage, uri: str) -> _Entries:
    columns = ["status", "item_uuid", "media_uuids", "media_versions"]
    with storage.open(uri) as file:
        table = pq.read_table(file, columns=columns)
    good = pc.fill_null(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["item_uuid"])), False)
    positions = np.flatnonzero(good.to_numpy())
    items = raw_column(table["item_uuid"].filter(good))
    media = table["media_uuids"].combine_chunks()
    versions = table["media_versions"].combine_chunks()
    paired = pc.equal(pc.list_value_length(media), pc.list_value_length(versions))
    paired = pc.fill_null(paired, False)
    media, versions = media.filter(paired).flatten(), versions.filter(paired).flatten()
    known = pc.is_valid(versions)
    return _Entries(
        items,
        positions.astype(np.int32),
        raw_column(versions.filter(known)),
        raw_column(media.filter(known)),
    )


def _first_of_each(keys: Keys) -> _Array:
    first = np.ones(len(keys), bool)
    first[1:] = (keys.high[1:] != keys.high[:-1]) | (keys.low[1:] != keys.low[:-1])
    return first


def _spelled(raw: _Array) -> str:
    text = raw.tobytes().hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=1 << 20)
    return bytes(sink.getvalue())
