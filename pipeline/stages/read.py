"""Read the rows of a shard that are not durable yet, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

    def __call__(self, row: dict[str, Any]) -> Iterator[pa.Table]:
        """One shard's work in; its batches out, as manifest rows."""
        work: Work = row["item"][0]
        file = self.manifest.files[work.shard.file]
        tables = read(self.storage, self.manifest, work.shard, work.ranges)
        for (start, stop), table in zip(work.ranges, tables, strict=True):
            yield Batch(work.shard.name, start, stop, table, {"manifest": file.name}).to_row()
