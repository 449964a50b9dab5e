"""Writes rows as Parquet files of about one size, a row group at a time."""

from __future__ import annotations

import os
from types import TracebackType
from typing import BinaryIO, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.storage import Storage, join, scheme_of

GROUP_BYTES = 64 << 20
"""A row group's size in memory: what is held; long columns compress well in it, and readers skip by it."""

GROUP_ROWS = 1 << 17


class PartWriter:
    """`part-00000.parquet`, … in a folder, each closed once it has `target_bytes`; so one is larger than that
    by a row group at most. `rows` and `parts` count what was written."""

    def __init__(self, storage: Storage, folder: str, schema: pa.Schema, target_bytes: int) -> None:
        self.rows = 0
        self.parts = 0
        self._storage = storage
        self._folder = folder
        self._schema = schema
        self._target = target_bytes
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._file: BinaryIO | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._close()

    def write(self, table: pa.Table) -> None:
        """Add rows of the schema."""
        self._held.append(table)
        self._held_rows += table.num_rows
        self._held_bytes += table.nbytes
        if self._held_bytes >= GROUP_BYTES or self._held_rows >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._held_rows == 0:
            return
        if self._writer is None or self._file is None:
            self._file = self._open(join(self._folder, f"part-{self.parts:05d}.parquet"))
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
            self.parts += 1
        self._writer.write_table(pa.concat_tables(self._held), row_group_size=self._held_rows)
        self.rows += self._held_rows
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        if self._file.tell() >= self._target:
            self._close()

    def _open(self, uri: str) -> BinaryIO:
        fs, path = self._storage.filesystem(uri)
        if scheme_of(uri) == "file":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return open(path, "wb")
        return cast(BinaryIO, fs.open(path, "wb"))

    def _close(self) -> None:
        writer, file = self._writer, self._file
        self._writer = self._file = None
        if writer is None or file is None:
            return
        try:
            writer.close()
            file.flush()
            if scheme_of(self._folder) == "file":
                os.fsync(file.fileno())
        finally:
            file.close()
