"""Who asks and who waits."""

from __future__ import annotations

from typing import Any

from pipeline.results.dedup import Claim, Dedup, Settled

A, B = "00000000-0000-8000-8000-00000000000a", "00000000-0000-8000-8000-00000000000b"
ANSWER = {"status": "ok", "text": "a cat", "retryable": None}


def claim(uuid: str, owner: str) -> Claim:
    return Claim(uuid, owner)


def failure(retryable: bool) -> dict[str, Any]:
    return {"status": "failed", "error_code": "engine_crash", "retryable": retryable}


def kinds(dedup: Dedup, *claims: Claim) -> list[str]:
    return [verdict.kind for verdict in dedup.claim(claims)]


def test_the_first_asks_and_the_others_wait_for_it() -> None:
    dedup = Dedup([])
    assert kinds(dedup, claim(A, "1"), claim(B, "1"), claim(A, "2")) == ["ask", "ask", "wait"]
    assert kinds(dedup, claim(A, "3"), claim(A, "1")) == ["wait", "ask"]
    assert dedup.outcomes([A, B]) == [None, None]
    dedup.settle([Settled(claim(A, "1"), ANSWER)])
    assert dedup.outcomes([A, B]) == [ANSWER, None]
    after = dedup.claim([claim(A, "4"), claim(A, "1")])
    assert [(one.kind, one.outcome) for one in after] == [("settled", ANSWER), ("own", ANSWER)]


def test_another_takes_over_once_where_a_failure_may_pass() -> None:
    dedup = Dedup([])
    assert kinds(dedup, claim(A, "1"), claim(A, "2"), claim(A, "3")) == ["ask", "wait", "wait"]
    dedup.settle([Settled(claim(A, "1"), failure(retryable=True))])
    assert dedup.outcomes([A]) == [None]
    assert kinds(dedup, claim(A, "2"), claim(A, "3")) == ["ask", "wait"]
    dedup.settle([Settled(claim(A, "2"), failure(retryable=True))])
    assert dedup.outcomes([A]) == [failure(retryable=True)]
    assert kinds(dedup, claim(A, "3")) == ["settled"]


def test_a_failure_that_would_not_pass_is_everyones() -> None:
    dedup = Dedup([])
    assert kinds(dedup, claim(A, "1"), claim(A, "2")) == ["ask", "wait"]
    dedup.settle([Settled(claim(A, "1"), failure(retryable=False))])
    assert dedup.outcomes([A]) == [failure(retryable=False)]
    assert kinds(dedup, claim(A, "2")) == ["settled"]


def test_an_answer_is_not_replaced_by_a_late_failure() -> None:
    dedup = Dedup([])
    dedup.settle([Settled(claim(A, "1"), ANSWER), Settled(claim(A, "2"), failure(retryable=False))])
    assert dedup.outcomes([A]) == [ANSWER]
