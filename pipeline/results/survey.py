"""How many rows of a recipe are ok, failed and waiting, counted from its files, also while they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.manifest.source import open_exact
from pipeline.results.recipe_files import RecipeFiles, batch_start, batch_stop, shard_files
from pipeline.storage import FileInfo, Storage

THREADS = 16
WHOLE_BYTES = 1 << 20
"""A file up to this size is fetched at once: its footer and two columns alone cost three requests or more."""

ROWS_AT_ONCE = 1 << 16
ATTEMPTS = 4
"""A run that goes on merges batches and replaces shards meanwhile: it is looked at anew each time."""


@dataclass(frozen=True)
class Sample:
    """One failed row of a code."""

    id: str
    reason: str


@dataclass
class Counts:
    """Result rows. `waiting`: durable rows without an answer yet, since an equal item's is to come.

    `failed` counts by code, and `samples` has one row of each.
    """

    ok: int = 0
    waiting: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    samples: dict[str, Sample] = field(default_factory=dict)

    @property
    def durable(self) -> int:
        """All rows that were counted."""
        return self.ok + self.waiting + self.failed.total()

    def add(self, other: Counts) -> None:
        """Count the rows of `other` too."""
        self.ok += other.ok
        self.waiting += other.waiting
        self.failed += other.failed
        self.samples = {**other.samples, **self.samples}


def survey(storage: Storage, recipe: RecipeFiles) -> Counts:
    """Count all rows that are durable. Reads two columns, a few files at once, and holds no file whole.

    Raises:
        OSError: as the store answers.
        ValueError: a file is not what a run writes.
    """
    shards = [(name, [file]) for name, file in recipe.shards.items()]
    shards += recipe.open_shards.items()
    total = Counts()

    def count(shard: tuple[str, list[FileInfo]]) -> Counts:
        return _shard(storage, recipe.folder, shard, total.samples.keys())

    with ThreadPoolExecutor(THREADS) as pool:
        for counts in pool.map(count, shards):
            total.add(counts)
    return total


def retried_rows(storage: Storage, recipe: RecipeFiles) -> int:
    """How many rows wait to replace those of a shard."""

    def rows(file: FileInfo) -> int:
        try:
            with _open(storage, file) as source:
                return int(pq.read_metadata(source).num_rows)
        except FileNotFoundError:
            return 0  # merged since it was listed

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(rows, recipe.retries))


def _shard(storage: Storage, folder: str, shard: tuple[str, list[FileInfo]], known: Set[str]) -> Counts:
    """Count a shard. A code that is `known` needs no sample."""
    name, files = shard
    for _ in range(ATTEMPTS - 1):
        try:
            return _files(storage, files, known)
        except OSError:
            files = shard_files(storage, folder, name)
    return _files(storage, files, known)


def _files(storage: Storage, files: Iterable[FileInfo], known: Set[str]) -> Counts:
    counts = Counts()
    reached = -1
    for file in sorted(files, key=lambda f: f.uri):
        is_batch = "/.batches/" in file.uri
        overlaps = is_batch and batch_start(file) < reached
        counts.add(_file(storage, file, reached if overlaps else None, known))
        reached = max(reached, batch_stop(file)) if is_batch else reached
    return counts


def _file(storage: Storage, file: FileInfo, from_row: int | None, known: Set[str]) -> Counts:
    """Count a file's rows; of a batch that overlaps the one before it only those from `from_row` on."""
    counts = Counts()
    columns = ["status", "error_code", *([] if from_row is None else ["row"])]
    with _open(storage, file) as source:
        parquet = pq.ParquetFile(source, pre_buffer=True)
        for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=columns, use_threads=False):
            chosen = batch if from_row is None else batch.filter(pc.greater_equal(batch["row"], from_row))
            counts.add(_batch(chosen))
        if new := counts.failed.keys() - known:
            counts.samples = _samples(parquet, new)
    return counts


def _open(storage: Storage, file: FileInfo) -> pa.NativeFile:
    if file.size <= WHOLE_BYTES:
        return pa.BufferReader(storage.read(file.uri))
    return pa.PythonFile(open_exact(storage, file.uri), mode="r")


def _batch(batch: pa.RecordBatch) -> Counts:
    """Count rows: those that are neither ok nor failed wait."""
    by_status = {one["values"]: one["counts"] for one in batch["status"].value_counts().to_pylist()}
    failed = batch.filter(pc.equal(batch["status"], "failed"))["error_code"].value_counts().to_pylist()
    ok = by_status.get("ok", 0)
    return Counts(
        ok=ok,
        waiting=batch.num_rows - ok - by_status.get("failed", 0),
        failed=Counter({one["values"]: one["counts"] for one in failed}),
    )


def _samples(parquet: pq.ParquetFile, codes: set[str]) -> dict[str, Sample]:
    """The first row of each code. Holds one piece of three columns."""
    found: dict[str, Sample] = {}
    columns = ["error_code", "id", "error"]
    for batch in parquet.iter_batches(ROWS_AT_ONCE >> 4, columns=columns, use_threads=False):
        for code in codes - found.keys():
            place = pc.index(batch["error_code"], code).as_py()
            if place >= 0:
                found[code] = Sample(batch["id"][place].as_py(), batch["error"][place].as_py() or "")
        if len(found) == len(codes):
            break
    return found
