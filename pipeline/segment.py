"""Which part of a video an item shows: its own seconds, or the run's where it says none."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import NamedTuple

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Segment(NamedTuple):
    """From `start` to `end`, in seconds from the first frame of the file; `end` None: to its last."""

    start: float
    end: float | None

    def own(self, start: float | None, end: float | None) -> Segment | None:
        """What a row asks for where this is the run's part; None where that is the run's part anyway.

        Raises:
            ValueError: it would end before it starts.
        """
        found = Segment(self.start if start is None else start, self.end if end is None else end)
        if found.end is not None and found.start >= found.end:
            which = [
                f"start ({found.start:.12g} s{_whose(start, 'start')})",
                f"end ({found.end:.12g} s{_whose(end, 'end')})",
            ]
            raise ValueError(f"the row's {which[0]} is not before its {which[1]}")
        return None if found == self else found


def seconds(value: object) -> float | None:
    """The seconds of a manifest's cell: a number, or a text that is one; None where it is null or blank.

    Raises:
        ValueError: it is something else, negative or not finite.
    """
    number = value
    if isinstance(value, str):
        if not value.strip():
            return None
        number = float(value) if _NUMBER.fullmatch(value.strip()) else None
    elif value is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise ValueError(f"has {_shown(value)} where a number of seconds belongs")
    try:
        found = float(number)
    except (OverflowError, ValueError):
        found = math.inf
    if not (math.isfinite(found) and found >= 0):
        raise ValueError(f"has {_shown(value)} where seconds from 0 on belong")
    return found + 0.0  # which turns -0.0 into the 0.0 that it equals


def _whose(value: float | None, name: str) -> str:
    return f", the run's media.video.{name}" if value is None else ""


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python writes
        text = "a number of thousands of digits"
    return text if len(text) <= 40 else text[:40] + "…"
