"""Result rows that lie above one another: the best of each, and those that wait for another row's answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.results.dedup import Answers
from pipeline.results.schema import WAITING

_RANKS = pa.array([WAITING, "failed", "ok"])


def best_rows(layers: Sequence[pa.Table], tasks: Sequence[str]) -> pa.Table:
    """Each (row, task) once, in their order: an `ok` row before a failed one before one that waits, and among
    equals that of the last layer."""
    table = pa.concat_tables(layers, promote_options="default")
    row = table["row"].to_numpy()
    task = pc.index_in(table["task"], pa.array(tasks)).to_numpy()
    rank = pc.index_in(table["status"], _RANKS).to_numpy()
    order = np.lexsort((np.arange(len(row)), rank, task, row))
    last = np.ones(len(order), bool)
    last[:-1] = (np.diff(row[order]) != 0) | (np.diff(task[order]) != 0)
    return table.take(order[last])


def taken_over(table: pa.Table) -> pa.Table:
    """Another recipe's rows as this one takes them over: the good ones come from a cache."""
    good = pc.equal(table["status"], "ok")
    source = pc.if_else(good, pa.scalar("cache"), table["source"])
    return table.set_column(table.schema.get_field_index("source"), table.schema.field("source"), source)


def waiting_rows(table: pa.Table) -> tuple[tuple[int, str], ...]:
    """The (row, task) pairs that still wait for another row's answer."""
    waiting = table.filter(pc.equal(table["status"], WAITING))
    return tuple(zip(waiting["row"].to_pylist(), waiting["task"].to_pylist(), strict=True))


def fill_waiting(table: pa.Table, answers: Answers) -> tuple[pa.Table, pa.Table]:
    """The rows with all that is known of those that wait, and the rows that were so filled by themselves."""
    places = np.flatnonzero(pc.equal(table["status"], WAITING).to_numpy())
    if not len(places):
        return table, table.slice(0, 0)
    rows = table.take(places).to_pylist()
    outcomes = answers.outcomes([row["item_uuid"] for row in rows])
    known = {number: outcome for number, outcome in enumerate(outcomes) if outcome is not None}
    filled = [
        {**rows[number], **outcome, "source": "duplicate", "attempts": 0} for number, outcome in known.items()
    ]
    made = pa.Table.from_pylist(filled, schema=table.schema)
    order = np.arange(table.num_rows)
    order[places[list(known)]] = table.num_rows + np.arange(len(known))
    return pa.concat_tables([table, made]).take(order), made
