"""Rows above one another."""

from __future__ import annotations

import pyarrow as pa

from pipeline.results.dedup import Claim, Dedup, Settled
from pipeline.results.layers import best_rows, fill_waiting, waiting_rows

A, B = "00000000-0000-8000-8000-00000000000a", "00000000-0000-8000-8000-00000000000b"
SCHEMA = pa.schema(
    [("row", pa.int64()), ("task", pa.string()), ("status", pa.string()), ("text", pa.string()),
     ("error_code", pa.string()), ("source", pa.string()), ("attempts", pa.int32()), ("item_uuid", pa.string())]
)  # fmt: skip


def layer(*rows: tuple[int, str, str, str | None]) -> pa.Table:
    made = [{"row": r, "task": t, "status": s, "text": x, "attempts": 1, "item_uuid": A} for r, t, s, x in rows]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def shown(table: pa.Table) -> list[tuple[int, str, str, str | None]]:
    return [(row["row"], row["task"], row["status"], row["text"]) for row in table.to_pylist()]


def test_ok_stands_over_failed_over_waiting_and_later_over_earlier() -> None:
    first = layer(
        (2, "b", "ok", "2b"), (1, "a", "failed", "old"), (1, "b", "waiting", None), (2, "a", "ok", "x")
    )
    second = layer((1, "a", "failed", "new"), (1, "b", "failed", "f"), (2, "a", "failed", None))
    third = layer((2, "a", "ok", "y"), (1, "b", "waiting", None))
    assert shown(best_rows([first, second, third], ["a", "b"])) == [
        (1, "a", "failed", "new"),
        (1, "b", "failed", "f"),
        (2, "a", "ok", "y"),
        (2, "b", "ok", "2b"),
    ]


def test_tasks_stand_in_the_order_of_the_recipe() -> None:
    table = best_rows([layer((1, "a", "ok", "1"), (1, "b", "ok", "2"), (0, "a", "ok", "0"))], ["b", "a"])
    assert [(row, task) for row, task, _, _ in shown(table)] == [(0, "a"), (1, "b"), (1, "a")]


def test_waiting_rows_are_filled_as_far_as_answers_are_known() -> None:
    answers = Dedup([])
    answers.settle([Settled(Claim(A, "elsewhere"), {"status": "ok", "text": "a cat", "source": "engine"})])
    table = layer((1, "a", "waiting", None), (2, "a", "ok", "a dog"), (3, "a", "waiting", None))
    uuids = pa.array([A, A, B])
    table = table.set_column(table.schema.get_field_index("item_uuid"), SCHEMA.field("item_uuid"), uuids)
    filled, made = fill_waiting(table, answers)
    assert shown(filled) == [(1, "a", "ok", "a cat"), (2, "a", "ok", "a dog"), (3, "a", "waiting", None)]
    assert filled["source"].to_pylist() == ["duplicate", None, None]
    assert filled["attempts"].to_pylist() == [0, 1, 1]
    assert waiting_rows(filled) == ((3, "a"),)
    assert made.num_rows == 1
