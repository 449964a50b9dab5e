"""How large a group of suspects to try, over made-up times and counts."""

from __future__ import annotations

import itertools

import pytest

from pipeline.engine.suspects import group_size


def test_a_few_are_tried_alone_where_a_start_takes_long() -> None:
    # Twenty answers of a second are less than one more start of a hundred.
    assert group_size(20, 0, 0, answer_seconds=1, start_seconds=100) == 1


def test_many_are_tried_in_groups() -> None:
    # Alone: 1 s each. In groups of 32: 1/32 s, and in 1 of 48 cases a start of 100 s for 32, and 1 s: 0.12 s.
    assert group_size(768, 0, 0, answer_seconds=1, start_seconds=100) in (16, 32, 64)


def test_where_every_third_is_guilty_none_has_company() -> None:
    assert group_size(700, 20, 6, answer_seconds=1, start_seconds=100) == 1


def test_a_single_find_does_not_yet_make_many() -> None:
    assert group_size(700, 32, 1, 1, 100) > 8
    assert group_size(700, 32, 2, 1, 100) < group_size(700, 32, 1, 1, 100)


@pytest.mark.parametrize("untried", [1, 2, 3, 5, 9])
def test_never_more_than_there_are(untried: int) -> None:
    assert 1 <= group_size(untried, 0, 0, answer_seconds=1, start_seconds=0) <= untried


def test_the_size_is_the_best_of_all_by_counting_every_case() -> None:
    # The expected time of one group of n with each member guilty at p, by going through all 2^n cases.
    p, answer, start, untried = 0.02, 1.0, 5.0, 25  # 1 / (2 * 25)

    def seconds(size: int) -> float:
        total = 0.0
        for guilty in itertools.product((False, True), repeat=size):
            chance = 1.0
            for one in guilty:
                chance *= p if one else 1 - p
            spent = answer
            if any(guilty):
                spent += start + (size * answer if size > 1 else 0)
                spent += start * (sum(guilty) if size > 1 else 0)
            total += chance * spent
        return total / size

    best = min((1, 2, 4, 8), key=seconds)
    assert group_size(untried, 0, 0, answer, start) == best
