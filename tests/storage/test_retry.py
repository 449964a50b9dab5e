"""New tries: how many, how long between them, and when it is over; on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.config import RetryBudget
from pipeline.storage import retry
from pipeline.storage.faults import BusyError
from pipeline.storage.retry import GaveUpError, retried


class Clock:
    """Time that passes only by sleeping. `slept` are the waits, in seconds."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def now(self) -> float:
        return sum(self.slept)


def failing(times: int, error: Callable[[], Exception]) -> tuple[Callable[[], str], list[int]]:
    tries: list[int] = []

    def action() -> str:
        tries.append(1)
        if len(tries) <= times:
            raise error()
        return "done"

    return action, tries


@pytest.fixture(autouse=True)
def _usual_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.5)


def test_waits_grow_and_are_spread() -> None:
    clock, (action, tries) = Clock(), failing(9, ConnectionResetError)
    budget = RetryBudget(attempts=10, seconds=1000)
    assert retried(action, budget, sleep=clock.sleep, clock=clock.now) == "done"
    assert len(tries) == 10
    longest = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(most / 2 <= wait <= most for wait, most in zip(clock.slept, longest, strict=True))
    other, (action, _) = Clock(), failing(9, ConnectionResetError)
    retried(action, budget, sleep=other.sleep, clock=other.now)
    assert other.slept != clock.slept


def test_it_ends_with_the_tries() -> None:
    clock, (action, tries) = Clock(), failing(100, TimeoutError)
    with pytest.raises(GaveUpError) as raised:
        retried(action, RetryBudget(attempts=3, seconds=1000), sleep=clock.sleep, clock=clock.now)
    assert len(tries) == 3
    assert raised.value.spent.startswith("3 tries in ")
    assert isinstance(raised.value.last, TimeoutError)


def test_it_ends_with_the_seconds() -> None:
    clock, (action, tries) = Clock(), failing(100, TimeoutError)
    with pytest.raises(GaveUpError):
        retried(action, RetryBudget(attempts=100, seconds=10), sleep=clock.sleep, clock=clock.now)
    # At least 0.25 + 0.5 + 1 + 2 + 4 seconds were slept before a wait of 4 or more would be too long.
    assert clock.now() <= 10
    assert 4 <= len(tries) <= 6


def test_a_fault_that_stays_is_raised_at_once() -> None:
    clock, (action, tries) = Clock(), failing(1, FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        retried(action, RetryBudget(attempts=3, seconds=10), sleep=clock.sleep, clock=clock.now)
    assert (len(tries), clock.slept) == (1, [])


def test_a_store_is_given_the_time_that_it_asks_for() -> None:
    clock, (action, _) = Clock(), failing(1, lambda: BusyError("HTTP 503", 7.0))
    assert retried(action, RetryBudget(attempts=3, seconds=10), sleep=clock.sleep, clock=clock.now) == "done"
    assert clock.slept == [7.0]
    clock, (action, tries) = Clock(), failing(1, lambda: BusyError("HTTP 503", 11.0))
    with pytest.raises(GaveUpError):
        retried(action, RetryBudget(attempts=3, seconds=10), sleep=clock.sleep, clock=clock.now)
    assert (len(tries), clock.slept) == (1, [])
