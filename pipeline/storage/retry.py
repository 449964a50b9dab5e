"""Try again what fails for a while, with growing waits, within a budget of tries and seconds."""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from pipeline.config import RetryBudget
from pipeline.storage.faults import is_transient, wait_asked

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class GaveUpError(Exception):
    """The budget is spent. `tries` were made in `seconds`; the cause is the last fault."""

    def __init__(self, tries: int, seconds: float, last: Exception) -> None:
        super().__init__(tries, seconds, last)
        self.last = last
        self.spent = f"{tries} {'try' if tries == 1 else 'tries'} in {seconds:.0f} s"


def retried(
    action: Callable[[], _T],
    budget: RetryBudget,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> _T:
    """What `action` returns, tried again after each transient fault.

    A wait is drawn from the upper half of 0.5, 1, 2, … up to 30 seconds, so that workers which failed
    together do not come back together; or it is what the store asks for, if that is longer.

    Raises:
        GaveUpError: the budget is spent, or would be while waiting.
        Exception: any that is not transient, as `action` raises it.
    """
    started = clock()
    for tries in itertools.count(1):
        try:
            return action()
        except Exception as error:
            if not is_transient(error):
                raise
            wait = max(_wait(tries), wait_asked(error) or 0.0)
            spent = clock() - started
            if tries >= budget.attempts or spent + wait > budget.seconds:
                raise GaveUpError(tries, spent, error) from error
            _log.debug("%s, trying again in %.1f s", type(error).__name__, wait)
        sleep(wait)
    raise AssertionError("counting has no end")


def _wait(tries: int) -> float:
    longest: float = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(tries - 1, 16))
    return random.uniform(longest / 2, longest)
