"""What is durable of a recipe's results: batch files, and the shard files that are made of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.storage import Storage, join

Range = tuple[int, int]
_BATCH = re.compile(r"/\.batches/([^/]+)/(\d+)-(\d+)\.parquet$")
_SHARD = re.compile(r"/([^/]+)\.parquet$")


@dataclass(frozen=True)
class Durable:
    """What a listing found: finished shards by name, and for the others the row ranges of their batches."""

    shards: frozenset[str]
    batches: dict[str, list[Range]]
    leftovers: list[str]
    """Batch files whose shard is finished: a crash came between the shard's PUT and their removal."""


@dataclass(frozen=True)
class Ledger:
    """The files of one recipe. `folder` is `OUTPUT/recipe=<id>`; `tasks` the rows that each item makes.

    Batches lie in `.batches/<shard>/<start>-<stop>.parquet`, hidden from readers of the folder; a
    finished shard is `<shard>.parquet`. Every file is put whole, under a name that says what it holds, so
    writing it again changes nothing.
    """

    storage: Storage
    folder: str
    tasks: tuple[str, ...]

    def shard_uri(self, shard: str) -> str:
        """Where a finished shard is."""
        return join(self.folder, f"{shard}.parquet")

    def batch_uri(self, shard: str, rows: Range) -> str:
        """Where the rows `[start, stop)` of a shard are until it is finished."""
        return join(self.folder, f".batches/{shard}/{rows[0]:010d}-{rows[1]:010d}.parquet")

    def scan(self) -> Durable:
        """List what is durable."""
        shards: set[str] = set()
        batches: dict[str, list[Range]] = {}
        uris: dict[str, list[str]] = {}
        for file in self.storage.find(self.folder):
            if batch := _BATCH.search(file.uri):
                shard = batch.group(1)
                batches.setdefault(shard, []).append((int(batch.group(2)), int(batch.group(3))))
                uris.setdefault(shard, []).append(file.uri)
            elif "/." not in file.uri.removeprefix(self.folder) and (found := _SHARD.search(file.uri)):
                shards.add(found.group(1))
        leftovers = [uri for shard in shards & uris.keys() for uri in uris[shard]]
        open_batches = {name: sorted(ranges) for name, ranges in batches.items() if name not in shards}
        return Durable(frozenset(shards), open_batches, leftovers)

    def put_batch(self, shard: str, rows: Range, table: pa.Table) -> None:
        """Make the results of a batch durable."""
        self.storage.put(self.batch_uri(shard, rows), _parquet(table))

    def finish(self, shard: str, rows: Range) -> int:
        """Make the shard's file of its batches, then remove them. Returns its number of rows.

        Raises:
            ValueError: a row is missing; nothing is written or removed.
        """
        folder = join(self.folder, f".batches/{shard}")
        files = [file.uri for file in self.storage.find(folder) if file.uri.endswith(".parquet")]
        if not files and shard in self.scan().shards:
            return (rows[1] - rows[0]) * len(self.tasks)
        tables = [pq.read_table(pa.BufferReader(self.storage.read(uri))) for uri in files]
        table = _once_each(pa.concat_tables(tables), rows, self.tasks, shard)
        self.storage.put(self.shard_uri(shard), _parquet(table))
        self.storage.remove(files)
        return int(table.num_rows)


def remaining(shard: Range, done: Iterable[Range], batch_rows: int) -> list[Range]:
    """The row ranges of a shard that no durable batch covers, cut into batches.

    Cuts lie at multiples of `batch_rows` from the shard's start, so that they do not depend on what is
    done; durable ranges of any other cut are respected.
    """
    gaps: list[Range] = []
    position = shard[0]
    for start, stop in [*sorted(done), (shard[1], shard[1])]:
        if start > position:
            gaps.append((position, start))
        position = max(position, stop)
    return [piece for gap in gaps for piece in _cut(gap, shard[0], batch_rows)]


def _cut(gap: Range, origin: int, size: int) -> list[Range]:
    first = gap[0] - (gap[0] - origin) % size
    edges = [gap[0], *range(first + size, gap[1], size), gap[1]]
    return [(start, stop) for start, stop in itertools.pairwise(edges) if start < stop]


def _once_each(table: pa.Table, rows: Range, tasks: Sequence[str], shard: str) -> pa.Table:
    order = pc.index_in(table["task"], pa.array(tasks))
    keys = pa.table({"row": table["row"], "task": order, "place": pa.array(range(table.num_rows))})
    keys = keys.group_by(["row", "task"]).aggregate([("place", "min")])
    keys = keys.sort_by([("row", "ascending"), ("task", "ascending")])
    expected = (rows[1] - rows[0]) * len(tasks)
    if keys.num_rows != expected or keys["row"][0].as_py() != rows[0]:
        raise ValueError(f"shard {shard} has {keys.num_rows} of {expected} rows: a batch file is missing")
    return table.take(keys["place_min"])


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
