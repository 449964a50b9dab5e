"""Make the results of a batch durable, and tell the driver what became of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import StorageError
from pipeline.results.dedup import Answers, Claim, Settled
from pipeline.results.ledger import Ledger
from pipeline.results.schema import WAITING
from pipeline.stages.batch import Batch, outage_text
from pipeline.stages.ready import OUTCOME


@dataclass(frozen=True)
class Write:
    """The stage. `answers` hears how each question ended."""

    ledger: Ledger
    answers: Answers

    def __call__(self, row: pa.Table) -> pa.Table:
        """One batch: result rows in; out goes a small row of numbers, once the file is there.

        Where it cannot be written, the row has the reason in its stats as `outage`.
        """
        batch = Batch.from_row(row)
        if "fatal" in batch.stats or "outage" in batch.stats:
            return _told(batch, batch.stats)
        try:
            return _told(batch, self._write(batch))
        except StorageError as error:
            # In the stats for the reason that `Generate` has: raised, it would come as text amid Ray's.
            return _told(batch, {**batch.stats, "outage": outage_text(error)})

    def _write(self, batch: Batch) -> dict[str, Any]:
        started = time.time()
        table = batch.items
        self.ledger.put_batch(batch.shard, (batch.start, batch.stop), table, again="again" in batch.stats)
        self.answers.settle(_settled(batch.shard, table))
        table = table.filter(pc.not_equal(table["status"], WAITING))
        codes = Counter(code for code in table["error_code"].to_pylist() if code)
        return {
            **batch.stats,
            "write_start": started,
            "write_end": time.time(),
            "rows": table.num_rows,
            "codes": dict(codes),
            "sources": dict(Counter(s for s in table["source"].to_pylist() if s)),
            "prompt_tokens": sum(n or 0 for n in table["prompt_tokens"].to_pylist()),
            "output_tokens": sum(n or 0 for n in table["output_tokens"].to_pylist()),
            "prepare_seconds": sum(n or 0 for n in table["prepare_seconds"].to_pylist()),
        }


def _settled(shard: str, table: pa.Table) -> list[Settled]:
    """The rows that were asked about, or failed before that with their identity known."""
    rows = table.select([*OUTCOME, "item_uuid", "row", "task"]).to_pylist()
    return [
        Settled(
            Claim(row["item_uuid"], f"{shard}:{row['row']}:{row['task']}"),
            {name: row[name] for name in OUTCOME},
        )
        for row in rows
        if row["item_uuid"] and row["status"] != WAITING and row["source"] in ("engine", None)
    ]


def _told(batch: Batch, stats: dict[str, Any]) -> pa.Table:
    return pa.table(
        {
            "shard": [batch.shard],
            "start": pa.array([batch.start], pa.int64()),
            "stop": pa.array([batch.stop], pa.int64()),
            "stats": [json.dumps(stats)],
        }
    )
