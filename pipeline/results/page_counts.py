"""How many pages documents have, by their version: kept beside the results, for every recipe."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.identity import uuid8
from pipeline.storage import Storage, join

FILE = ".documents/pages.parquet"
"""Below the output; hidden, since readers of Parquet folders pass over such names."""

_SCHEMA = pa.schema([("document", pa.binary(16)), ("version", pa.string()), ("pages", pa.int32())])


class PageCounts:
    """The last known version and number of pages of each document, by its URI. Threads may share it.

    Some 200 bytes of memory and 20 on disk for each.
    """

    def __init__(self, known: dict[bytes, tuple[str, int]]) -> None:
        self._known = known
        self._is_new = False

    @classmethod
    def load(cls, storage: Storage, output: str) -> PageCounts:
        """What earlier runs into the output have counted."""
        try:
            table = pq.read_table(pa.BufferReader(storage.read(join(output, FILE))))
        except FileNotFoundError:
            return cls({})
        columns = [table[name].to_pylist() for name in _SCHEMA.names]
        return cls({document: (version, pages) for document, version, pages in zip(*columns, strict=True)})

    def find(self, uri: str, version: str | None) -> int | None:
        """The pages of this version of a document, if they were counted."""
        known = self._known.get(_key(uri))
        return known[1] if known and version is not None and known[0] == version else None

    def last(self, uri: str) -> int | None:
        """The pages that a document had when they were last counted."""
        known = self._known.get(_key(uri))
        return known[1] if known else None

    def add(self, uri: str, version: str | None, pages: int) -> None:
        """Keep a count. Nothing is kept of a document whose version the store does not tell."""
        if version is not None:
            self._known[_key(uri)] = version, pages
            self._is_new = True

    def save(self, storage: Storage, output: str) -> None:
        """Put what is known, if any of it is new. Of two runs at once the last one's stays; the other counts
        again."""
        if not self._is_new:
            return
        rows = [(document, *known) for document, known in sorted(self._known.items())]
        arrays = [
            pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
        ]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(arrays, schema=_SCHEMA), sink, compression="zstd")
        storage.put(join(output, FILE), bytes(sink.getvalue()))


def _key(uri: str) -> bytes:
    return UUID(uuid8(uri.encode(errors="surrogateescape"))).bytes
