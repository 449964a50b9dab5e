"""A recipe's folder as a run leaves it, with rows whose fate is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.results.ledger import Ledger, Range
from pipeline.results.lineage import ManifestRecord, file_metadata, write_records
from pipeline.results.schema import failed, result_schema
from pipeline.storage import Storage

RECIPE = {"tasks": {"caption": "Describe this image."}, "sampling": {"temperature": 0.0, "max_tokens": 48}}
KEEP = pa.schema([("license", pa.string())])


@dataclass(frozen=True)
class RecipeFolder:
    """`OUTPUT/recipe=<id>` of a manifest of one file with `rows` rows, in shards of `shard_rows`."""

    storage: Storage
    output: str
    rows: int
    shard_rows: int
    id: str = "r1"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.storage, f"{self.output}/recipe={self.id}", ("caption",))

    def begin(self, **changes: Any) -> None:
        """Put the records, as a run does first; `changes` are made to the recipe."""
        record = ManifestRecord([("m.jsonl", self.rows, "f1")], self.shard_rows)
        write_records(self.storage, self.ledger.folder, {**RECIPE, **changes}, record)

    def shard(self, number: int) -> tuple[str, Range]:
        start = number * self.shard_rows
        stop = min(start + self.shard_rows, self.rows)
        return f"00000-0a0b0c0d-{start:010d}-{stop:010d}", (start, stop)

    def put_batch(self, number: int, rows: Range, fate: Callable[[int], dict[str, Any]]) -> None:
        """Make a batch of a shard durable."""
        self.ledger.put_batch(self.shard(number)[0], rows, table(range(*rows), fate, self.id))

    def finish(self, numbers: Iterable[int], fate: Callable[[int], dict[str, Any]]) -> None:
        """Make shards durable, and remove their batches."""
        for number in numbers:
            name, rows = self.shard(number)
            self.put_shard(number, table(range(*rows), fate, self.id))
            batches = self.storage.find(f"{self.ledger.folder}/.batches/{name}")
            self.storage.remove([file.uri for file in batches])

    def put_shard(self, number: int, rows: pa.Table) -> None:
        """Put a shard's file."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        self.storage.put(self.ledger.shard_uri(self.shard(number)[0]), sink.getvalue().to_pybytes())

    def put_run(self, stamp: str, **summary: Any) -> None:
        record = {"summary": summary, "config": {}}
        self.storage.put(f"{self.ledger.folder}/_runs/{stamp}.json", json.dumps(record).encode())


def ok(row: int) -> dict[str, Any]:
    """An answered row."""
    return {"status": "ok", "text": f"caption of {row}"}


def third_fails(row: int) -> dict[str, Any]:
    """Rows 0, 3, 6, … fail, those that can be divided by 6 with another code than the others."""
    code = ("fetch_not_found" if row % 6 == 0 else "too_large") if row % 3 == 0 else None
    return failed(code, f"row {row} is bad", False) if code else ok(row)


def table(rows: Iterable[int], fate: Callable[[int], dict[str, Any]], recipe: str = "r1") -> pa.Table:
    """Result rows."""
    fixed = {"task": "caption", "attempts": 1, "manifest": "m.jsonl", "license": "cc0"}
    made = [{"id": f"item-{row}", "row": row, **fixed, **fate(row)} for row in rows]
    schema = result_schema(KEEP, file_metadata(RECIPE, recipe))
    waiting = [pa.field(f.name, f.type) if f.name == "status" else f for f in schema]
    return pa.Table.from_pylist(made, schema=pa.schema(waiting, metadata=schema.metadata))
