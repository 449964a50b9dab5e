"""How a run is getting on: a bar on a terminal, a line now and then in a job's log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from tqdm import tqdm

from pipeline.report import Tally

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows result rows done, the rate since an engine was up, the time left, and failures."""

    def __init__(self, total: int, done_before: int, tally: Tally) -> None:
        self._tally = tally
        self._total = total
        self._done_before = done_before
        self._said = time.monotonic()
        terminal = sys.stderr.isatty()
        self._bar = tqdm(total=total, initial=done_before, unit="row", smoothing=0.1) if terminal else None

    def __enter__(self) -> Self:
        if self._bar is None:
            print(f"{self._done_before:,}/{self._total:,} rows done; starting engines", flush=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif kind is None:
            self._say()

    def update(self) -> None:
        """Show the tally as it is now."""
        if self._bar is not None:
            self._bar.set_postfix(failed=self._tally.failed, refresh=False)
            self._bar.update(self._done_before + self._tally.rows - self._bar.n)
        elif time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        done = self._done_before + self._tally.rows
        rate = self._tally.rate
        speed = f", {rate:,.1f} rows/s, {_duration((self._total - done) / rate)} left" if rate else ""
        print(f"{done:,}/{self._total:,} rows done{speed}, {self._tally.failed:,} failed", flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"
