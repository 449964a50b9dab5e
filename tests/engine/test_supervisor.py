"""Engines that die or hang on cue; `test_deaths` has the deaths of real ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from pipeline.engine.base import Answer, Engine, Request
from pipeline.engine.figures import EngineFigures
from pipeline.engine.supervisor import EngineSupervisor
from pipeline.errors import Code, EngineError, ItemError

Outcome = tuple[Answer, int] | BaseException
Result = TypeVar("Result")


@dataclass
class Factory:
    """Starts fake engines, and remembers them.

    Attributes:
        poison: ids of the requests that kill any engine.
        lifetimes: after how many requests the first engine dies, the second, …; the others live on.
        failing: how many of the starts after the first fail.
        start_seconds: that each start takes.
        everyone: how many requests the first engine waits for before it answers one.
    """

    poison: frozenset[str] = frozenset()
    lifetimes: list[int] = field(default_factory=list)
    failing: int = 0
    start_seconds: float = 0.0
    everyone: int = 1
    engines: list[FakeEngine] = field(default_factory=list)
    starts: int = 0

    def __call__(self) -> Engine:
        self.starts += 1
        time.sleep(self.start_seconds)
        if 1 < self.starts <= 1 + self.failing:
            raise EngineError("no memory left")
        lifetime = self.lifetimes.pop(0) if self.lifetimes else None
        everyone = 1 if self.engines else self.everyone
        self.engines.append(FakeEngine(self.poison, lifetime, everyone))
        return self.engines[-1]


class FakeEngine:
    """Answers a request with its id, or dies with all that it has in hand."""

    def __init__(self, poison: frozenset[str], lifetime: int | None, everyone: int) -> None:
        self._poison, self._lifetime, self._everyone = poison, lifetime, everyone
        self._dead = asyncio.Event()
        self._all_here = asyncio.Event()
        self.seen: list[str] = []
        self.in_hand: set[str] = set()
        self.company: dict[str, set[str]] = {}
        self.closed = False

    async def generate(self, request: Request) -> Answer:
        assert not self.closed, "a request to a closed engine"
        if request.id == "refused":
            raise ItemError(Code.PROMPT_TOO_LONG, "too long")
        self.seen.append(request.id)
        self.in_hand.add(request.id)
        for other in self.in_hand:
            self.company.setdefault(other, set()).update(self.in_hand)
        try:
            await self._wait_for_the_others()
            if request.id in self._poison or len(self.seen) == self._lifetime:
                self._dead.set()
            await asyncio.sleep(0.001)
            if self._dead.is_set():
                raise EngineError("dead")
            return Answer(request.id, "stop", 1, 1)
        finally:
            self.in_hand.discard(request.id)

    async def _wait_for_the_others(self) -> None:
        if len(self.seen) >= self._everyone:
            self._all_here.set()
        await self._all_here.wait()

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(asyncio.wait_for(work, timeout=10))


async def outcomes(supervisor: EngineSupervisor, ids: list[str]) -> dict[str, Outcome]:
    requests = [Request(id, {}, {}) for id in ids]
    found = await asyncio.gather(*map(supervisor.generate, requests), return_exceptions=True)
    return dict(zip(ids, found, strict=True))


def supervised(factory: Factory, ids: list[str], max_restarts: int = 5) -> tuple[dict[str, Outcome], int]:
    """What became of the requests, sent at once, and the number of restarts."""

    async def work() -> tuple[dict[str, Outcome], int]:
        supervisor = EngineSupervisor(factory, max_restarts)
        return await outcomes(supervisor, ids), supervisor.restarts

    return run(work())


def answered(id: str, attempts: int) -> tuple[Answer, int]:
    return Answer(id, "stop", 1, 1), attempts


TWENTY = [f"request {number}" for number in range(20)]


def test_a_healthy_engine_answers_at_the_first_attempt() -> None:
    factory = Factory()
    found, restarts = supervised(factory, TWENTY)
    assert found == {id: answered(id, 1) for id in TWENTY}
    assert (restarts, len(factory.engines)) == (0, 1)


def test_a_dead_engine_is_replaced_once_and_its_requests_are_sent_again() -> None:
    factory = Factory(lifetimes=[20], everyone=20)
    found, restarts = supervised(factory, TWENTY)
    assert found == {id: answered(id, 2) for id in TWENTY}
    assert restarts == 1
    first, second = factory.engines
    assert (first.closed, second.closed) == (True, False)
    assert sorted(second.seen) == sorted(TWENTY)


def test_the_poison_is_found_and_all_others_are_answered() -> None:
    factory = Factory(poison=frozenset({"request 7"}), everyone=20)
    found, restarts = supervised(factory, TWENTY)
    error = found.pop("request 7")
    assert isinstance(error, ItemError)
    assert (error.code, error.code.retryable) == (Code.ENGINE_CRASH, True)
    assert error.reason.endswith("at last alone with it: dead")
    assert [outcome[0].text for outcome in found.values() if isinstance(outcome, tuple)] == list(found)
    sent = {id: sum(engine.seen.count(id) for engine in factory.engines) for id in found}
    assert {id: outcome[1] for id, outcome in found.items() if isinstance(outcome, tuple)} == sent
    assert restarts == len(factory.engines) - 1


def test_where_a_start_takes_long_two_deaths_find_the_poison() -> None:
    factory = Factory(poison=frozenset({"request 7"}), everyone=20, start_seconds=0.2)
    found, restarts = supervised(factory, TWENTY)
    error = found.pop("request 7")
    assert isinstance(error, ItemError)
    assert "died 2 times" in error.reason
    assert found == {id: answered(id, 2) for id in found}
    assert restarts == 2


def test_the_last_death_of_the_poison_is_alone_with_its_engine() -> None:
    factory = Factory(poison=frozenset({"request 7"}), everyone=20)
    supervised(factory, TWENTY)
    deaths = [engine.company["request 7"] for engine in factory.engines if "request 7" in engine.company]
    assert len(deaths[0]) == 20
    assert deaths[-1] == {"request 7"}


def test_several_poisons_are_found() -> None:
    poison = frozenset({"request 3", "request 7", "request 11"})
    found, _ = supervised(Factory(poison=poison), TWENTY)
    crashed = {id for id, outcome in found.items() if isinstance(outcome, ItemError)}
    assert crashed == poison
    assert all(isinstance(found[id], tuple) for id in TWENTY if id not in poison)


def test_a_third_of_all_is_poison() -> None:
    ids = [f"request {number}" for number in range(90)]
    poison = frozenset(id for number, id in enumerate(ids) if number % 10 in (2, 3, 7))
    factory = Factory(poison=poison, everyone=len(ids))
    found, restarts = supervised(factory, ids)
    crashed = {id for id, outcome in found.items() if isinstance(outcome, ItemError)}
    assert crashed == poison
    assert all(isinstance(found[id], tuple) for id in ids if id not in poison)
    # Each poison must be seen alone; what is above that are the first death, and groups that held several.
    assert len(poison) < restarts <= 1.4 * len(poison)


def test_more_poisons_in_a_row_than_restarts_do_not_end_the_run() -> None:
    async def work() -> dict[str, Outcome]:
        supervisor = EngineSupervisor(Factory(poison=frozenset(TWENTY)), max_restarts=2)
        await supervisor.generate(Request("good", {}, {}))
        return await outcomes(supervisor, TWENTY)

    found = run(work())
    assert [outcome.code for outcome in found.values() if isinstance(outcome, ItemError)] == [
        Code.ENGINE_CRASH
    ] * len(TWENTY)


def test_engines_that_die_of_what_they_answered_before_end_the_run() -> None:
    factory = Factory(lifetimes=[2, *[1] * 99])
    with pytest.raises(EngineError, match=r"engine\.max_restarts"):
        run(_one_after_another(EngineSupervisor(factory, max_restarts=2), ["good", *TWENTY]))
    assert factory.engines[-1].seen == ["good"], "the last one had what was known to be harmless"


async def _one_after_another(supervisor: EngineSupervisor, ids: list[str]) -> None:
    for id in ids:
        with contextlib.suppress(ItemError):
            await supervisor.generate(Request(id, {}, {}))


def test_a_request_that_comes_later_is_answered_beside_the_poison() -> None:
    async def work() -> list[dict[str, Outcome]]:
        supervisor = EngineSupervisor(Factory(poison=frozenset({"poison"})), max_restarts=5)

        async def later() -> dict[str, Outcome]:
            await asyncio.sleep(0.005)
            return await outcomes(supervisor, TWENTY)

        return list(await asyncio.gather(outcomes(supervisor, ["poison", "other"]), later()))

    first, second = run(work())
    assert isinstance(first["poison"], ItemError)
    assert all(isinstance(outcome, tuple) for outcome in [first["other"], *second.values()])


def test_who_comes_while_suspects_are_tried_waits_and_is_no_suspect() -> None:
    async def work() -> tuple[Factory, dict[str, Outcome]]:
        factory = Factory(poison=frozenset({"poison"}), everyone=2)
        supervisor = EngineSupervisor(factory, max_restarts=5)
        first = asyncio.create_task(outcomes(supervisor, ["other", "poison"]))
        while not supervisor.restarts:
            await asyncio.sleep(0)
        later = await outcomes(supervisor, TWENTY)
        await first
        return factory, later

    factory, later = run(work())
    assert later == {id: answered(id, 1) for id in TWENTY}
    assert {company for engine in factory.engines[1:] for company in engine.company.get("poison", ())} <= {
        "poison",
        "other",
    }


def test_what_the_engine_refuses_kills_nothing() -> None:
    found, restarts = supervised(Factory(), ["refused", *TWENTY])
    assert found.pop("refused") == ItemError(Code.PROMPT_TOO_LONG, "too long")
    assert found == {id: answered(id, 1) for id in TWENTY}
    assert restarts == 0


@pytest.mark.parametrize("max_restarts", [0, 1, 2])
def test_an_engine_that_never_answers_ends_the_run(max_restarts: int) -> None:
    factory = Factory(lifetimes=[1] * 99)
    found, restarts = supervised(factory, ["a", "b", "c"], max_restarts)
    assert restarts == max_restarts
    assert factory.starts == 1 + max_restarts
    for outcome in found.values():
        assert isinstance(outcome, EngineError)
        assert "engine.max_restarts" in str(outcome)


def test_an_answer_between_deaths_forgives_them() -> None:
    async def work() -> int:
        supervisor = EngineSupervisor(Factory(lifetimes=[2, 2, 2, 2, 2, 2]), max_restarts=1)
        for number in range(7):
            assert isinstance((await supervisor.generate(Request(str(number), {}, {})))[0], Answer)
        return supervisor.restarts

    assert run(work()) == 6


def test_an_engine_that_starts_again_only_at_the_third_try() -> None:
    factory = Factory(lifetimes=[20], failing=2, everyone=20)
    found, restarts = supervised(factory, TWENTY, max_restarts=3)
    assert found == {id: answered(id, 2) for id in TWENTY}
    assert restarts == 3


def test_an_engine_that_does_not_start_again_says_why() -> None:
    factory = Factory(lifetimes=[20], failing=9, everyone=20)
    found, _ = supervised(factory, TWENTY, max_restarts=3)
    assert factory.starts == 1 + 3
    assert any("no memory left" in str(outcome) for outcome in found.values())
    assert all(isinstance(outcome, EngineError) for outcome in found.values())


def test_an_engine_that_cannot_start_at_all() -> None:
    def start() -> Engine:
        raise EngineError("no such model")

    with pytest.raises(EngineError, match="no such model"):
        EngineSupervisor(start, max_restarts=5)


class Deaf(FakeEngine):
    """Takes a request with `hang` in its id, and never moves again."""

    def __init__(self) -> None:
        super().__init__(frozenset(), None, 1)
        self._hangs = False

    async def generate(self, request: Request) -> Answer:
        self._hangs |= "hang" in request.id
        if self._hangs:
            await asyncio.Event().wait()
        return await super().generate(request)


def test_an_engine_that_hangs_is_replaced_and_the_request_is_found() -> None:
    engines: list[FakeEngine] = []

    def start() -> Engine:
        engines.append(Deaf())
        return engines[-1]

    async def work() -> dict[str, Outcome]:
        return await outcomes(EngineSupervisor(start, 5, hang_seconds=0.1), [*TWENTY, "hang"])

    found = run(work())
    error = found.pop("hang")
    assert isinstance(error, ItemError)
    assert error.code == Code.ENGINE_CRASH
    assert "engine.hang_seconds" in error.reason
    assert all(isinstance(outcome, tuple) for outcome in found.values())
    assert [engine.closed for engine in engines] == [True] * (len(engines) - 1) + [False]


def test_an_engine_that_moves_does_not_hang() -> None:
    async def work() -> tuple[Answer, int]:
        figures = EngineFigures()
        engines: list[FakeEngine] = []

        def start() -> Engine:
            engines.append(Deaf())
            return engines[-1]

        supervisor = EngineSupervisor(start, 5, figures, hang_seconds=0.1)
        asked = asyncio.create_task(supervisor.generate(Request("hang", {}, {})))
        for _ in range(30):
            await asyncio.sleep(0.01)
            figures.moved()
        assert not asked.done()
        assert len(engines) == 1
        return await asked

    with pytest.raises(ItemError, match="no token of any request"):
        run(work())


def test_close_closes_the_newest_engine() -> None:
    async def work() -> list[bool]:
        factory = Factory(lifetimes=[1])
        supervisor = EngineSupervisor(factory, max_restarts=1)
        await supervisor.generate(Request("a", {}, {}))
        supervisor.close()
        return [engine.closed for engine in factory.engines]

    assert run(work()) == [True, True]
