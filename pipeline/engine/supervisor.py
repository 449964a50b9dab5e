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
    `max_restarts` deaths with no answer between them end the run.
    """

    def __init__(self, start: Callable[[], Engine], max_restarts: int) -> None:
        self._start = start
        self._max_restarts = max_restarts
        self._engine = start()
        self._gate = _Gate()
        self._replacing = asyncio.Lock()
        self._barren_restarts = 0
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
                engine = self._engine
                try:
                    answer = await engine.generate(request)
                except EngineError as error:
                    log.warning("an engine died: %s", error)
                else:
                    self._barren_restarts = 0
                    return answer, deaths + 1
            await self._replace(engine)
            deaths += 1
            if alone:
                raise ItemError(
                    Code.ENGINE_CRASH, f"the engine died {deaths} times on this item, the last time alone"
                )

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    async def _replace(self, dead: Engine) -> None:
        async with self._replacing:
            if self._engine is not dead:
                return
            if self._barren_restarts >= self._max_restarts:
                raise EngineError(
                    f"the engine died {self._max_restarts + 1} times without an answer between "
                    "(engine.max_restarts)"
                )
            dead.close()
            self._barren_restarts += 1
            self.restarts += 1
            self._engine = await asyncio.to_thread(self._start)


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
            self._is_alone = True
        try:
            yield
        finally:
            async with self._changed:
                self._is_alone = False
                self._changed.notify_all()
