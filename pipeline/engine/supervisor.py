"""Keeps an engine alive: replaces a dead one in place, and finds the request that kills it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pipeline.engine.base import Answer, Engine, Request
from pipeline.errors import Code, EngineError, ItemError

log = logging.getLogger(__name__)

RETRIES_IN_COMPANY = 1


class EngineSupervisor:
    """Answers requests through an engine that may die.

    A request that was in flight when the engine died is sent again; one that was there at two deaths is
    sent alone, and if the engine dies then too, that request is what kills it: it ends as `engine_crash`.
    An engine that cannot start again counts as one more death; more than `max_restarts` of them with no
    answer between end the run.
    """

    def __init__(self, start: Callable[[], Engine], max_restarts: int) -> None:
        self._start = start
        self._max_restarts = max_restarts
        self._engine = start()
        self._gate = _Gate()
        self._replacing = asyncio.Lock()
        self._barren_restarts = 0
        self._given_up: EngineError | None = None
        self.restarts = 0

    async def generate(self, request: Request) -> tuple[Answer, int]:
        """The answer, and how often the request was sent.

        Raises:
            ItemError: the request cannot be answered.
            EngineError: no engine can be kept alive.
        """
        deaths = 0
        while True:
            alone = deaths > RETRIES_IN_COMPANY
            async with self._gate.alone() if alone else self._gate.together():
                engine = await self._living()
                try:
                    answer = await engine.generate(request)
                except EngineError as error:
                    # Still inside the gate: the next one alone must not meet the dead engine, or it is blamed.
                    await self._replace(engine, error)
                else:
                    self._barren_restarts = 0
                    return answer, deaths + 1
            deaths += 1
            if alone:
                raise ItemError(
                    Code.ENGINE_CRASH, f"the engine died {deaths} times on this item, the last time alone"
                )

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    async def _living(self) -> Engine:
        async with self._replacing:
            self._check_not_given_up()
            return self._engine

    def _check_not_given_up(self) -> None:
        if self._given_up:
            raise EngineError(str(self._given_up)) from self._given_up

    async def _replace(self, dead: Engine, cause: EngineError) -> None:
        async with self._replacing:
            self._check_not_given_up()
            if self._engine is not dead:
                return
            dead.close()
            while self._engine is dead:
                log.warning("an engine died or did not start again: %s", cause)
                if self._barren_restarts >= self._max_restarts:
                    self._given_up = EngineError(
                        f"the engine was restarted {self._barren_restarts} times without an answer between "
                        f"(engine.max_restarts); the last time: {cause}"
                    )
                    raise self._given_up from cause
                self._barren_restarts += 1
                self.restarts += 1
                try:
                    self._engine = await asyncio.to_thread(self._start)
                except EngineError as error:
                    cause = error


class _Gate:
    """Lets many through together, or one alone; those who want to be alone go first."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._inside = 0
        self._waiting_alone = 0
        self._is_alone = False

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_alone and not self._waiting_alone)
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._changed:
            self._waiting_alone += 1
            try:
                await self._changed.wait_for(lambda: not self._is_alone and not self._inside)
            finally:
                self._waiting_alone -= 1
                self._changed.notify_all()
            self._is_alone = True
        try:
            yield
        finally:
            async with self._changed:
                self._is_alone = False
                self._changed.notify_all()
