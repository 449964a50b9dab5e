"""Read the rows of a shard that are not durable yet, a batch at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.manifest import Manifest, Shard, read
from pipeline.stages.batch import Batch
from pipeline.storage import Storage


@dataclass(frozen=True)
class Work:
    """A shard and the row ranges of it that are still to be done, each one batch."""

    shard: Shard
    ranges: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """How many manifest rows that is."""
        return sum(stop - start for start, stop in self.ranges)


@dataclass(frozen=True)
class Read:
    """The stage."""

    storage: Storage
    manifest: Manifest

    def __call__(self, row: pa.Table) -> Iterator[pa.Table]:
        """One shard's work in; its batches out, as manifest rows."""
        work: Work = pickle.loads(row["work"][0].as_py())  # noqa: S301 (made by `work_rows` in the driver)
        file = self.manifest.files[work.shard.file]
        tables = read(self.storage, self.manifest, work.shard, work.ranges)
        for (start, stop), table in zip(work.ranges, tables, strict=True):
            yield Batch(work.shard.name, start, stop, table, {"manifest": file.name}).to_row()


def work_rows(work: Sequence[Work]) -> list[pa.Table]:
    """The graph's input: a table of one row for each shard."""
    return [pa.table({"work": pa.array([pickle.dumps(one)], pa.large_binary())}) for one in work]
