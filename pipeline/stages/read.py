"""Read the rows of a shard that are not durable yet, a batch at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import StorageError
from pipeline.manifest import Manifest, Shard, read
from pipeline.manifest.rows import build_table, keep_array
from pipeline.stages.batch import Batch
from pipeline.storage import Storage


@dataclass(frozen=True)
class Work:
    """A shard and the row ranges of it that are still to be done, each one batch.

    `again`: of a range whose rows are durable already, the (row, task) pairs that are done again.
    """

    shard: Shard
    ranges: tuple[tuple[int, int], ...]
    again: Mapping[tuple[int, int], tuple[tuple[int, str], ...]] = field(default_factory=dict)

    @classmethod
    def to_do_again(cls, shard: Shard, pairs: Sequence[tuple[int, str]], batch_rows: int) -> Work:
        """The work of doing (row, task) pairs again, in batches of so many rows."""
        by_row: dict[int, list[tuple[int, str]]] = {}
        for row, task in sorted(pairs):
            by_row.setdefault(row, []).append((row, task))
        rows = list(by_row)
        again = {
            (piece[0], piece[-1] + 1): tuple(pair for row in piece for pair in by_row[row])
            for piece in (rows[i : i + batch_rows] for i in range(0, len(rows), batch_rows))
        }
        return cls(shard, tuple(again), again)

    @property
    def rows(self) -> int:
        """How many manifest rows that is."""
        whole = sum(stop - start for start, stop in self.ranges if (start, stop) not in self.again)
        return whole + sum(len({row for row, _ in pairs}) for pairs in self.again.values())


@dataclass(frozen=True)
class Read:
    """The stage."""

    storage: Storage
    manifest: Manifest

    def __call__(self, row: pa.Table) -> Iterator[pa.Table]:
        """One shard's work in; its batches out, as manifest rows.

        Where the manifest can be read no longer, a batch of none has the reason in its stats as `outage`:
        raised here, it would reach the driver as text amid Ray's.
        """
        work: Work = pickle.loads(row["work"][0].as_py())  # noqa: S301 (made by `work_rows` in the driver)
        file = self.manifest.files[work.shard.file]
        try:
            with self.storage.stopping("read", file.uri):
                yield from self._batches(work, file.name)
        except StorageError as error:
            none = build_table(self.manifest, file, 0, [], keep_array(self.manifest.keep, [], 0))
            stats = {"manifest": file.name, "outage": str(error)}
            yield Batch(work.shard.name, 0, 0, none, stats).to_row()

    def _batches(self, work: Work, name: str) -> Iterator[pa.Table]:
        tables = read(self.storage, self.manifest, work.shard, work.ranges)
        for (start, stop), table in zip(work.ranges, tables, strict=True):
            stats: dict[str, Any] = {"manifest": name}
            wanted = table
            if pairs := work.again.get((start, stop)):
                rows = pa.array(sorted({row for row, _ in pairs}), pa.int64())
                wanted = table.filter(pc.is_in(table["row"], rows))
                stats["again"] = pairs
            yield Batch(work.shard.name, start, stop, wanted, stats).to_row()


def work_rows(work: Sequence[Work]) -> list[pa.Table]:
    """The graph's input: a table of one row for each shard."""
    return [pa.table({"work": pa.array([pickle.dumps(one)], pa.large_binary())}) for one in work]
