"""The seconds of a manifest's cell, and which part of a video a row and a run ask for together."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from pipeline.segment import Segment, seconds

RUN = Segment(2.0, 9.0)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        (0, 0.0),
        (3, 3.0),
        (2.5, 2.5),
        (Decimal("1.25"), 1.25),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        (".5", 0.5),
        ("1e1", 10.0),
        ("-0.0", 0.0),
    ],
)
def test_cells_that_are_seconds(cell: object, expected: float | None) -> None:
    found = seconds(cell)
    assert found == expected
    # -0.0 equals 0.0 and is written otherwise, which would make it another identity.
    assert found is None or math.copysign(1, found) == 1


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (True, "has True where a number of seconds belongs"),
        ("00:01:30", "has '00:01:30' where a number of seconds belongs"),
        ("1_000", "number of seconds"),
        ("nan", "number of seconds"),
        ([1], "number of seconds"),
        (b"1", "number of seconds"),
        ({"s": 1}, "number of seconds"),
        (-1, "has -1 where seconds from 0 on belong"),
        ("-0.5", "has '-0.5' where seconds from 0 on belong"),
        (math.nan, "has nan where"),
        (math.inf, "has inf where"),
        ("1e999", "has '1e999' where"),
        (10**400, "seconds from 0 on"),
        pytest.param(10**5000, "thousands of digits", id="long"),
        ("x" * 1000, "…"),
    ],
)
def test_cells_that_are_none(cell: object, words: str) -> None:
    with pytest.raises(ValueError, match="seconds") as refused:
        seconds(cell)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, None),
        (2.0, None, None),
        (None, 9.0, None),
        (2.0, 9.0, None),
        (0.0, None, (0.0, 9.0)),
        (None, 3.0, (2.0, 3.0)),
        (20.0, 30.0, (20.0, 30.0)),
    ],
)
def test_what_a_row_does_not_say_is_the_runs(
    start: float | None, end: float | None, expected: tuple[float, float] | None
) -> None:
    assert RUN.own(start, end) == expected


def test_without_a_setting_the_video_ends_where_it_ends() -> None:
    assert Segment(0.0, None).own(5.0, None) == (5.0, None)
    assert Segment(0.0, None).own(0.0, None) is None


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (3.0, 3.0, "start (3 s) is not before its end (3 s)"),
        (5.0, 3.5, "start (5 s) is not before its end (3.5 s)"),
        (12.0, None, "start (12 s) is not before its end (9 s, the run's media.video.end)"),
        (None, 1.0, "start (2 s, the run's media.video.start) is not before its end (1 s)"),
    ],
)
def test_a_part_that_ends_before_it_starts_is_refused(
    start: float | None, end: float | None, words: str
) -> None:
    with pytest.raises(ValueError, match="the row's start") as refused:
        RUN.own(start, end)
    assert words in str(refused.value)
