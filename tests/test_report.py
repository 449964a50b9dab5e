"""Tallies and summaries, from numbers written by hand."""

from __future__ import annotations

from typing import Any

from pipeline.report import RunSummary, Tally


def batch(at: float, rows: int, codes: dict[str, int], engine: dict[str, Any]) -> dict[str, Any]:
    """A batch prepared in 1 s from `at`, waiting 2 s, answered in 3 s, waiting 0.5 s, written in 0.25 s."""
    times = {"prepare": (at, at + 1), "generate": (at + 3, at + 6), "write": (at + 6.5, at + 6.75)}
    edges = {f"{stage}_{edge}": times[stage][i] for stage in times for i, edge in enumerate(("start", "end"))}
    sources = {"engine": rows - sum(codes.values())}
    tokens = {"prompt_tokens": 100 * rows, "output_tokens": 10 * rows}
    return {**edges, "rows": rows, "codes": codes, "sources": sources, **tokens, "engine": engine}


def engine(name: str, idle: float, restarts: int = 0) -> dict[str, Any]:
    start = {"a": 31.5, "b": 30.0}[name]
    return {"name": name, "start_seconds": start, "idle_seconds": idle, "restarts": restarts}


def summary() -> RunSummary:
    tally = Tally()
    tally.add(batch(1000, 8, {"not_media": 1, "too_large": 1}, engine("a", 0.5)))
    tally.add(batch(1004, 8, {"not_media": 1}, engine("a", 1.5, restarts=1)))
    tally.add(batch(1001, 4, {}, engine("b", 0.25)))
    return RunSummary.of(tally, output="out/recipe=r", rows=30, done_before=10, started=990.0)


def test_rows_rates_and_times() -> None:
    found = summary()
    assert (found.rows, found.done_before, found.ok, found.cached) == (30, 10, 17, 0)
    assert found.failed == {"not_media": 2, "too_large": 1}
    # The first engine took a batch at 1003, the last answer came at 1010.
    assert found.rows_per_second == round(20 / 7, 3)
    assert found.prompt_tokens_per_second == round(2000 / 7, 3)
    assert found.busy_seconds == {"prepare": 3.0, "generate": 9.0, "write": 0.75}
    assert found.waiting_seconds == {"for an engine": 6.0, "for a writer": 1.5, "engine idle": 1.75}
    assert (found.engine_start_seconds, found.engine_restarts) == (31.5, 1)


def test_what_people_read() -> None:
    text = "\n".join(summary().lines())
    assert "30 rows in out/recipe=r" in text
    assert "17 ok, 3 failed, 0 cached; 10 were done before" in text
    assert "2 not_media" in text
    assert "1 engine restarts" in text
    nothing = RunSummary.of(Tally(), output="o", rows=30, done_before=30, started=990.0)
    assert nothing.lines() == ["nothing to do: all 30 rows are in o"]
