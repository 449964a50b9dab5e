"""What is durable of a recipe's results: batch files, and the shard files that are made of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.results.dedup import Answers
from pipeline.results.layers import best_rows, fill_waiting, taken_over, waiting_rows
from pipeline.results.layout import AGAIN, BATCH, BATCHES, DONE_AGAIN, SHARD, name_in
from pipeline.storage import Storage, join

Range = tuple[int, int]
ROW_GROUP = 1024
_READERS = 8


@dataclass(frozen=True)
class Durable:
    """What a listing found: finished shards by name, and for the others the row ranges of their batches."""

    shards: frozenset[str]
    batches: dict[str, list[Range]]
    again: frozenset[str]
    """Shards with rows that were done again and are not merged yet."""
    leftovers: list[str]
    """Batch files whose shard is finished: a crash came between the shard's PUT and their removal."""


@dataclass(frozen=True)
class Finished:
    """A shard's end: its rows, and of those that had waited for another row the codes of their failures.

    With `waiting` the shard is not finished: nobody has answered these (row, task) pairs.
    """

    rows: int
    waiting: tuple[tuple[int, str], ...] = ()
    filled: int = 0
    codes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Ledger:
    """The files of one recipe. `folder` is `OUTPUT/recipe=<id>`; `tasks` the rows that each item makes;
    `lineage` goes into each file's metadata.

    Batches lie in `.batches/<shard>/<start>-<stop>.parquet`, hidden from readers of the folder; rows that
    are done again lie in `.retries/` likewise; a finished shard is `<shard>.parquet`. Every file is put
    whole, under a name that says what it holds, so writing it again changes nothing.
    """

    storage: Storage
    folder: str
    tasks: tuple[str, ...]
    lineage: dict[str, str] = field(default_factory=dict)

    def shard_uri(self, shard: str) -> str:
        """Where a finished shard is."""
        return join(self.folder, f"{shard}.parquet")

    def batch_uri(self, shard: str, rows: Range, again: bool = False) -> str:
        """Where the rows `[start, stop)` of a shard are until it is finished, or those of them done again."""
        name = f"{shard}/{rows[0]:010d}-{rows[1]:010d}.parquet"
        return join(self.folder, f"{AGAIN if again else BATCHES}/{name}")

    def scan(self) -> Durable:
        """List what is durable."""
        shards: set[str] = set()
        again: set[str] = set()
        batches: dict[str, list[Range]] = {}
        uris: dict[str, list[str]] = {}
        for file in self.storage.find(self.folder):
            name = name_in(self.folder, file.uri)
            if batch := BATCH.fullmatch(name):
                shard, start, stop = batch.groups()
                batches.setdefault(shard, []).append((int(start), int(stop)))
                uris.setdefault(shard, []).append(file.uri)
            elif done := DONE_AGAIN.fullmatch(name):
                again.add(done.group(1))
            elif found := SHARD.fullmatch(name):
                shards.add(found.group(1))
        leftovers = [uri for shard in shards & uris.keys() for uri in uris[shard]]
        open_batches = {name: sorted(ranges) for name, ranges in batches.items() if name not in shards}
        return Durable(frozenset(shards), open_batches, frozenset(again), leftovers)

    def put_batch(self, shard: str, rows: Range, table: pa.Table, again: bool = False) -> None:
        """Make the results of a batch durable."""
        self.storage.put(self.batch_uri(shard, rows, again), self._bytes(table))

    def finish(self, shard: str, rows: Range, answers: Answers, base: str | None = None) -> Finished:
        """Make the shard's file of all that is durable of it, then remove its batches.

        A row that is there several times stands as `layers.best_rows` says. Rows that wait for another row's
        answer get it from `answers`.

        Args:
            base: another recipe's file of the shard, whose rows stand below its own.

        Raises:
            ValueError: a row is missing; nothing is written or removed.
        """
        batches, again = self._batch_files(BATCHES, shard), self._batch_files(AGAIN, shard)
        finished = self._read_if_there(self.shard_uri(shard))
        if finished is not None and not again:
            self.storage.remove(batches)
            return Finished(finished.num_rows)
        layers = [] if base is None or finished is not None else [taken_over(self._read(base))]
        layers += [finished] if finished is not None else self._read_all(batches)
        layers += self._read_all(again)
        table = best_rows(layers, self.tasks) if layers else None
        found = table.num_rows if table is not None else 0
        expected = (rows[1] - rows[0]) * len(self.tasks)
        if table is None or found != expected or table["row"][0].as_py() != rows[0]:
            if finished is None and self._read_if_there(self.shard_uri(shard)) is not None:
                return Finished(expected)  # Another driver has finished it meanwhile.
            raise ValueError(f"shard {shard} has {found} of {expected} rows: a batch file is missing")
        table, filled = fill_waiting(table, answers)
        waiting = waiting_rows(table)
        if waiting:
            return Finished(expected, waiting)
        self.storage.put(self.shard_uri(shard), self._bytes(table))
        self.storage.remove([*batches, *again])
        return Finished(
            expected, (), filled.num_rows, dict(Counter(filled["error_code"].drop_null().to_pylist()))
        )

    def open_batches(self) -> Iterator[pa.Table]:
        """The rows of every batch that is durable and not yet part of a finished shard."""
        for folder in (BATCHES, AGAIN):
            for uri in self._batch_files(folder):
                if (table := self._read_if_there(uri)) is not None:
                    yield table

    def failed_rows(
        self, uri: str, codes: Collection[str], but: Collection[tuple[int, str]]
    ) -> list[tuple[int, str]]:
        """The (row, task) pairs of a shard's file that failed with one of these codes (none: any)."""
        with self.storage.open(uri) as file:
            table = pq.read_table(file, columns=["row", "task", "status", "error_code"])
        rows = table.filter(pc.equal(table["status"], "failed")).to_pylist()
        pairs = [(row["row"], row["task"]) for row in rows if not codes or row["error_code"] in codes]
        return [pair for pair in pairs if pair not in but]

    def done_again(self, shard: str) -> set[tuple[int, str]]:
        """The (row, task) pairs that were done again and are not merged yet."""
        tables = self._read_all(self._batch_files(AGAIN, shard))
        return {pair for t in tables for pair in zip(t["row"].to_pylist(), t["task"].to_pylist(), strict=True)}

    def _bytes(self, table: pa.Table) -> bytes:
        return to_parquet(table.replace_schema_metadata(self.lineage))

    def _batch_files(self, folder: str, shard: str = "") -> list[str]:
        found = [file.uri for file in self.storage.find(join(self.folder, f"{folder}/{shard}"))]
        kind = BATCH if folder == BATCHES else DONE_AGAIN
        return [uri for uri in found if kind.fullmatch(name_in(self.folder, uri))]

    def _read_all(self, uris: list[str]) -> list[pa.Table]:
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(self._read_if_there, uris))
        return [table for table in found if table is not None]

    def _read_if_there(self, uri: str) -> pa.Table | None:
        try:
            return self._read(uri)
        except FileNotFoundError:
            return None

    def _read(self, uri: str) -> pa.Table:
        return pq.read_table(pa.BufferReader(self.storage.read(uri)))


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


def to_parquet(table: pa.Table) -> bytes:
    """The bytes of a result file. Its row groups are small: the cache reads single rows of it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP)
    return bytes(sink.getvalue())
