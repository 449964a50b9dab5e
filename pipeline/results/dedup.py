"""Who answers an item: an earlier run, another row of this run, or this row by asking the engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pipeline.results.index import Index, Place

FAILURES_IN_A_RUN = 2
"""An item that failed in a way that may pass is asked by a second row, and no more."""


@dataclass(frozen=True)
class Claim:
    """A row that wants an answer. `owner` names it, the same in every attempt at its batch."""

    uuid: str
    owner: str


@dataclass(frozen=True)
class Verdict:
    """What a claim is told.

    `ask`: it is yours, ask the engine. `wait`: another row of this run asks. `settled`: another row of
    this run has asked, `outcome` is what it got; `own`: this very row has. `cached`: an earlier run's answer
    stands at `place`.
    """

    kind: Literal["ask", "wait", "settled", "own", "cached"]
    outcome: dict[str, Any] | None = None
    place: Place | None = None


@dataclass(frozen=True)
class Settled:
    """How a row's question to the engine ended: the columns of its result."""

    claim: Claim
    outcome: dict[str, Any]


class Answers(Protocol):
    """What the stages ask; `Dedup` in one process, its Ray actor in a run."""

    def known_media(self, versions: Sequence[str]) -> list[str | None]:
        """The media uuid of each object version, where an earlier run has read it."""
        ...

    def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Decide for each row whether it asks the engine."""
        ...

    def settle(self, settled: Sequence[Settled]) -> None:
        """Record how rows that were told to ask ended."""
        ...

    def outcomes(self, uuids: Sequence[str]) -> list[dict[str, Any] | None]:
        """What became of items that rows wait for; None while nobody knows."""
        ...


class Dedup:
    """Claims and outcomes of one run, and the indexes of earlier ones.

    The run's own outcomes lie in a temporary database on disk, so that memory stays bounded however many
    there are; it is no record of anything: whoever starts afresh reads what is durable.
    """

    def __init__(self, indexes: Sequence[Index], trust_versions: bool = True) -> None:
        self._indexes = indexes
        self._trust_versions = trust_versions
        # An empty name is a private file on disk that goes with the connection.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("pragma journal_mode=off")
        self._db.execute("pragma synchronous=off")
        self._db.execute(
            "create table items "
            "(uuid blob primary key, owner text, failures integer, outcome text) without rowid"
        )

    def knows_answers(self) -> bool:
        """Whether any earlier answer is known."""
        return any(len(index.items) for index in self._indexes)

    def knows_media(self) -> bool:
        """Whether any object version is known, so that it pays to look one up."""
        return self._trust_versions and any(len(index.versions) for index in self._indexes)

    def known_media(self, versions: Sequence[str]) -> list[str | None]:
        """The media uuid of each object version, where an earlier run has read it."""
        found: list[str | None] = [None] * len(versions)
        for index in self._indexes:
            for number, uuid in enumerate(index.find_media(versions)):
                found[number] = found[number] or uuid
        return found

    def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Decide for each row whether it asks the engine. Claiming again gives the same."""
        cached = self._cached([one.uuid for one in claims])
        with self._transaction():
            return [
                Verdict("cached", place=place) if place else self._claim(claim)
                for claim, place in zip(claims, cached, strict=True)
            ]

    def settle(self, settled: Sequence[Settled]) -> None:
        """Record how rows that were told to ask ended. An answer is never replaced by a failure."""
        with self._transaction():
            for one in settled:
                key = _key(one.claim.uuid)
                row = self._row(key)
                failures, outcome = row[1:] if row else (0, None)
                if outcome and json.loads(outcome)["status"] == "ok":
                    continue
                failures += one.outcome["status"] != "ok"
                self._put(key, one.claim.owner, failures, json.dumps(one.outcome))

    def outcomes(self, uuids: Sequence[str]) -> list[dict[str, Any] | None]:
        """What became of items that rows wait for: an answer, or a failure that is final in this run."""
        rows = [self._row(_key(uuid)) for uuid in uuids]
        return [_final(row) if row else None for row in rows]

    def _cached(self, uuids: Sequence[str]) -> list[Place | None]:
        found: list[Place | None] = [None] * len(uuids)
        for index in self._indexes:
            for number, place in enumerate(index.find(uuids)):
                found[number] = found[number] or place
        return found

    def _claim(self, claim: Claim) -> Verdict:
        key = _key(claim.uuid)
        row = self._row(key)
        if row is None:
            self._put(key, claim.owner, 0, None)
            return Verdict("ask")
        owner, failures, outcome = row
        if final := _final(row):
            return Verdict("own" if owner == claim.owner else "settled", outcome=final)
        if outcome is not None and owner != claim.owner:
            self._put(key, claim.owner, failures, None)
            return Verdict("ask")
        return Verdict("ask" if owner == claim.owner else "wait")

    def _row(self, key: bytes) -> tuple[str, int, str | None] | None:
        found: tuple[str, int, str | None] | None = self._db.execute(
            "select owner, failures, outcome from items where uuid = ?", (key,)
        ).fetchone()
        return found

    def _put(self, key: bytes, owner: str, failures: int, outcome: str | None) -> None:
        self._db.execute("insert or replace into items values (?, ?, ?, ?)", (key, owner, failures, outcome))

    def _transaction(self) -> sqlite3.Connection:
        self._db.execute("begin")
        return self._db


def _key(uuid: str) -> bytes:
    return bytes.fromhex(uuid.replace("-", ""))


def _final(row: tuple[str, int, str | None]) -> dict[str, Any] | None:
    """The outcome if no other row shall ask again."""
    _, failures, text = row
    if text is None:
        return None
    outcome: dict[str, Any] = json.loads(text)
    passing = outcome["status"] != "ok" and outcome["retryable"] and failures < FAILURES_IN_A_RUN
    return None if passing else outcome
