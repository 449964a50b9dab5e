"""What an actor measures of its own time, by a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipeline.engine.figures import EngineFigures
from pipeline.stages import replica
from pipeline.stages.replica import ReplicaMeter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(replica, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_time_starts_with_the_first_batch_and_idle_is_time_without_one(clock: SimpleNamespace) -> None:
    meter = ReplicaMeter("a")
    clock.now += 50
    with meter.batch():
        clock.now += 3
        with meter.batch():
            clock.now += 4
    clock.now += 2
    with meter.batch():
        clock.now += 1
        stats = meter.stats(None, start_seconds=50)
    assert (stats["up_seconds"], stats["idle_seconds"], stats["start_seconds"]) == (10, 2, 50)


def test_requests_in_hand_are_weighed_by_their_time(clock: SimpleNamespace) -> None:
    meter = ReplicaMeter("a")
    with meter.batch(), meter.request():
        clock.now += 1
        with meter.request(), meter.request():
            clock.now += 2
        clock.now += 4
    assert meter.stats(None, 0)["request_seconds"] == 1 * 1 + 3 * 2 + 1 * 4


def test_the_engines_figures_are_in_the_stats() -> None:
    meter, figures = ReplicaMeter("a"), EngineFigures()
    meter.watch(figures)
    figures.preemptions += 2
    figures.moved()
    stats = meter.stats(None, 0)
    assert (stats["name"], stats["preemptions"], stats["restarts"]) == ("a", 2, 0)
    assert "last_step" not in stats
