"""Keeps an engine alive: replaces one that died or hangs, and finds the request that kills it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.engine.base import Answer, Engine, Request
from pipeline.engine.figures import EngineFigures
from pipeline.engine.life import Life
from pipeline.engine.suspects import group_size
from pipeline.errors import Code, EngineError, ItemError

log = logging.getLogger(__name__)

HANG_SECONDS = 600.0


@dataclass
class EngineCrash(ItemError):
    """The request kills engines. `attempts`: how often it was sent."""

    attempts: int


@dataclass
class _Suspect:
    """A request that was in flight when an engine died. `sent` counts how often it was."""

    request: Request
    outcome: asyncio.Future[tuple[Answer, int]]
    sent: int = 1
    alone: bool = False


class EngineSupervisor:
    """Answers requests through an engine that may die or hang.

    Whoever was in flight at a death is a suspect. While suspects are tried, in groups or alone as costs least
    time (`engine.suspects`), all other requests wait. One with which an engine dies alone, its second time at
    least, is what kills engines: it ends as `engine_crash`.

    The run is given up when an engine does not start again in `max_restarts` tries, and when so many died one
    after the other without an answer, and the next one dies of a request that was answered before.

    Args:
        start: builds an engine; called once now (raises EngineError), later in a thread.
        figures: where the engine shows its signs of life.
        hang_seconds: without one, or an answer, while requests are in flight, an engine counts as dead.
    """

    def __init__(
        self,
        start: Callable[[], Engine],
        max_restarts: int,
        figures: EngineFigures | None = None,
        hang_seconds: float = HANG_SECONDS,
    ) -> None:
        self._start = start
        self._max_restarts = max_restarts
        self._figures = figures or EngineFigures()
        self._hang_seconds = hang_seconds
        self._start_seconds = 0.0
        self._answer_seconds: float | None = None
        self._life = self._new_life()
        self._open = asyncio.Event()
        self._open.set()
        self._suspects: deque[_Suspect] = deque()
        self._trial: asyncio.Task[None] | None = None
        self._known_good: Request | None = None
        self._barren_deaths = 0
        self._given_up: EngineError | None = None
        self.restarts = 0
        self.lost_seconds = 0.0

    async def generate(self, request: Request) -> tuple[Answer, int]:
        """The answer, and how often the request was sent.

        Raises:
            ItemError: the request cannot be answered.
            EngineError: no engine can be kept alive.
        """
        while not self._open.is_set():
            await self._open.wait()
        # From here to the engine there is no await, so that no one else's trial can begin between.
        if self._given_up:
            raise EngineError(str(self._given_up)) from self._given_up
        try:
            return await self._send(self._life, request), 1
        except EngineError:
            suspect = self._accuse(request)
        return await suspect.outcome

    def close(self) -> None:
        """Close the engine."""
        if self._trial is not None:
            self._trial.cancel()
        self._life.close()

    async def _send(self, life: Life, request: Request) -> Answer:
        started = time.monotonic()
        answer = await life.generate(request)
        seconds = time.monotonic() - started
        if self._answer_seconds is None or seconds < self._answer_seconds:
            self._answer_seconds = seconds
        self._barren_deaths = 0
        self._known_good = request
        return answer

    def _accuse(self, request: Request) -> _Suspect:
        self._open.clear()
        suspect = _Suspect(request, asyncio.get_running_loop().create_future())
        self._suspects.append(suspect)
        if self._trial is None:
            self._trial = asyncio.create_task(self._try_suspects())
        return suspect

    async def _try_suspects(self) -> None:
        began = time.monotonic()
        try:
            await self._life.left()
            await self._replace()
            tried = guilty = 0
            while self._suspects:
                alone = self._suspects[0].alone
                size = 1 if alone else self._group_size(tried, guilty)
                group = [self._suspects.popleft() for _ in range(size)]
                if await self._survived(group):
                    tried += size
                elif size == 1:
                    tried, guilty = tried + 1, guilty + 1
        except EngineError as error:
            self._give_up(error)
        except Exception as error:
            self._give_up(EngineError(f"{type(error).__name__}: {error}"))
            raise
        finally:
            self.lost_seconds += time.monotonic() - began
            self._trial = None
            self._open.set()

    def _group_size(self, tried: int, guilty: int) -> int:
        untried = sum(not suspect.alone for suspect in self._suspects)
        return group_size(untried, tried, guilty, self._answer_seconds or 1.0, self._start_seconds)

    async def _survived(self, group: list[_Suspect]) -> bool:
        """Send the group's requests, and settle what became of them."""
        life = self._life
        sent = (self._send(life, suspect.request) for suspect in group)
        found = await asyncio.gather(*sent, return_exceptions=True)
        dead: list[_Suspect] = []
        for suspect, outcome in zip(group, found, strict=True):
            suspect.sent += 1
            if isinstance(outcome, EngineError):
                dead.append(suspect)
            else:
                _settle(suspect, outcome)
        if not dead:
            return True
        for suspect in reversed(dead):
            suspect.alone = True
            self._suspects.appendleft(suspect)
        await life.left()
        await self._replace()
        if len(group) == 1:
            # Not before: where no engine lives, nothing is known of the item.
            guilty = self._suspects.popleft()
            reason = f"the engine died {guilty.sent} times on this item, at last alone with it: {life.cause}"
            _settle(guilty, EngineCrash(Code.ENGINE_CRASH, reason, guilty.sent))
        return False

    async def _replace(self) -> None:
        """Put a new engine in the dead one's place.

        Raises:
            EngineError: there is no use in it.
        """
        cause = self._life.cause or EngineError("the engine ended")
        log.warning("an engine died: %s", cause)
        if self._known_good is None and self._barren_deaths >= self._max_restarts:
            raise self._hopeless(cause)
        self._barren_deaths += 1
        self._life.close()
        await self._start_again(cause)
        if self._barren_deaths > self._max_restarts and self._known_good is not None:
            life = self._life
            try:
                await self._send(life, self._known_good)
            except EngineError as error:
                raise self._hopeless(error) from error

    async def _start_again(self, cause: EngineError) -> None:
        for _ in range(self._max_restarts):
            self.restarts += 1
            try:
                self._life = await asyncio.to_thread(self._new_life)
            except EngineError as error:
                log.warning("an engine did not start again: %s", error)
                cause = error
            else:
                return
        raise self._hopeless(cause)

    def _new_life(self) -> Life:
        began = time.monotonic()
        life = Life(self._start(), self._figures, self._hang_seconds)
        self._start_seconds = time.monotonic() - began
        return life

    def _hopeless(self, cause: EngineError) -> EngineError:
        return EngineError(
            f"the engine was restarted {self._max_restarts} times without an answer between "
            f"(engine.max_restarts); the last time: {cause}"
        )

    def _give_up(self, error: EngineError) -> None:
        self._given_up = error
        for suspect in self._suspects:
            _settle(suspect, EngineError(str(error)))
        self._suspects.clear()


def _settle(suspect: _Suspect, outcome: Answer | BaseException) -> None:
    if suspect.outcome.done():  # whoever asked went away
        return
    if isinstance(outcome, BaseException):
        suspect.outcome.set_exception(outcome)
    else:
        suspect.outcome.set_result((outcome, suspect.sent))
