"""Tallies and summaries, from numbers written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.bottleneck import bottleneck
from pipeline.report import RunSummary, Tally, effort_of


def batch(at: float, rows: int, codes: dict[str, int], engine: dict[str, Any]) -> dict[str, Any]:
    """A batch prepared in 1 s from `at`, waiting 2 s, answered in 3 s, waiting 0.5 s, written in 0.25 s."""
    times = {"prepare": (at, at + 1), "generate": (at + 3, at + 6), "write": (at + 6.5, at + 6.75)}
    edges = {f"{stage}_{edge}": times[stage][i] for stage in times for i, edge in enumerate(("start", "end"))}
    sources = {"engine": rows - sum(codes.values())}
    tokens = {"prompt_tokens": 100 * rows, "output_tokens": 10 * rows}
    return {**edges, "rows": rows, "codes": codes, "sources": sources, **tokens, "engine": engine}


def engine(name: str, idle: float, restarts: int = 0, **figures: float) -> dict[str, Any]:
    start = {"a": 31.5, "b": 30.0}[name]
    up = 10 * idle  # later batches of an engine have both larger
    times = {"start_seconds": start, "up_seconds": up, "idle_seconds": idle, "lost_seconds": 0.0}
    return {"name": name, **times, "restarts": restarts, "request_seconds": 0.0, **figures}


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
    # From the command at 990 to 1006, when the batch of 1000 was answered, and to 1010.
    assert (found.first_answer_seconds, found.last_answer_seconds) == (16.0, 20.0)


def test_replicas_have_their_last_figures_means_and_shares() -> None:
    tally = Tally()
    early = {"steps": 10, "running": 100, "waiting": 0, "preemptions": 0, "gpu_utilisation": 0.5}
    late = {
        "steps": 100, "running": 2000, "waiting": 500, "preemptions": 3, "request_seconds": 450.0,
        "prefix_queries": 1000, "prefix_hits": 250, "media_queries": 0, "media_hits": 0,
        "prompt_tokens": 3000, "output_tokens": 600, "gpu_utilisation": 0.9,
    }  # fmt: skip
    tally.add(batch(1004, 8, {}, engine("a", 1.5, **late)))
    tally.add(batch(1000, 8, {}, engine("a", 0.5, **early)))
    tally.add(batch(1001, 4, {}, engine("b", 0.25, **early)))
    found = RunSummary.of(tally, output="o", rows=20, done_before=0, started=990.0, most_in_hand=64)
    a = found.replicas["a"]
    # 15 s up, of which 1.5 s idle.
    assert (a["mean_running"], a["mean_waiting"], a["mean_in_hand"]) == (20, 5, round(450 / 13.5, 3))
    assert (a["prefix_hit_rate"], a["output_tokens_per_second"]) == (0.25, 40)
    assert "media_hit_rate" not in a
    effort = effort_of(tally, 100.0, 64)
    assert (effort.running, effort.waiting) == (2100 / 110, 500 / 110)
    assert (effort.up_seconds, effort.start_seconds, effort.preempted) == (17.5, 31.5, 3 / 20)
    assert effort.gpu_utilisation == pytest.approx(0.7)
    assert found.bottleneck == bottleneck(effort_of(tally, found.seconds, 64))
    assert found.lines()[-1].startswith("  bottleneck ")


def test_what_people_read() -> None:
    text = "\n".join(summary().lines())
    assert "30 rows in out/recipe=r" in text
    assert "17 ok, 3 failed, 0 cached; 10 were done before" in text
    assert "2 not_media" in text
    assert "1 engine restarts" in text
    nothing = RunSummary.of(Tally(), output="o", rows=30, done_before=30, started=990.0)
    assert (nothing.first_answer_seconds, nothing.last_answer_seconds) == (None, None)
    assert nothing.lines() == ["nothing to do: all 30 rows are in o"]


def test_warnings_are_told() -> None:
    tally = Tally()
    tally.add(batch(1000, 8, {}, engine("a", 0.5)))
    told = RunSummary.of(tally, output="o", rows=8, done_before=0, started=990.0, warnings=["two are one"])
    assert "  warning    two are one" in told.lines()
