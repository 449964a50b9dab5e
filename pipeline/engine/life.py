"""One engine from its start to its death, and the requests that it has in hand."""

from __future__ import annotations

import asyncio
import time

from pipeline.engine.base import Answer, Engine, Request
from pipeline.engine.figures import EngineFigures
from pipeline.errors import EngineError


class Life:
    """An engine that ends once, for all its requests: by an error of its own, or because it hangs.

    It hangs when neither its figures moved nor any request was answered for `hang_seconds` while requests
    were in hand.
    """

    def __init__(self, engine: Engine, figures: EngineFigures, hang_seconds: float) -> None:
        self._engine = engine
        self._figures = figures
        self._hang_seconds = hang_seconds
        self._in_hand: set[asyncio.Task[Answer]] = set()
        self._moved = 0.0
        self._watch: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False
        self.cause: EngineError | None = None

    async def generate(self, request: Request) -> Answer:
        """The engine's answer.

        Raises:
            ItemError: as the engine.
            EngineError: the engine has ended, for whatever reason.
        """
        if self.cause is not None:
            raise EngineError(str(self.cause))
        if not self._in_hand:
            self._moved = time.monotonic()
            self._empty.clear()
            self._watch = asyncio.create_task(self._watch_for_a_hang())
        task = asyncio.create_task(self._engine.generate(request))
        self._in_hand.add(task)
        try:
            answer = await task
        except asyncio.CancelledError:
            task.cancel()
            if self.cause is not None:
                raise EngineError(str(self.cause)) from self.cause
            raise
        except EngineError as error:
            self.end(error)
            raise
        finally:
            self._in_hand.discard(task)
            if not self._in_hand:
                self._empty.set()
                self._stop_watching()
        self._moved = time.monotonic()
        return answer

    def end(self, cause: EngineError) -> None:
        """Let all requests in hand fail with the cause."""
        if self.cause is None:
            self.cause = cause
            for task in self._in_hand:
                task.cancel()

    async def left(self) -> None:
        """Wait until no request is in hand."""
        await self._empty.wait()

    def close(self) -> None:
        """Close the engine, in the event loop that it answered in."""
        self._stop_watching()
        if not self._closed:
            self._closed = True
            self._engine.close()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _watch_for_a_hang(self) -> None:
        while True:
            await asyncio.sleep(min(5.0, self._hang_seconds / 10))
            still = time.monotonic() - max(self._moved, self._figures.last_step)
            if still > self._hang_seconds:
                self.end(EngineError(f"no token of any request for {still:.0f} s (engine.hang_seconds)"))
