"""Bounds what is in flight by its size, so that a few large items weigh as much as many small ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """So many bytes. One that wants more than all of it gets all of it, alone.

    Who does not fit waits, and smaller ones may pass: nothing stands behind the first in a queue.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def held(self, size: int) -> AsyncIterator[None]:
        """Hold so many bytes of it, from when they are free."""
        wanted = min(size, self._size)
        await self._take(wanted)
        try:
            yield
        finally:
            self._give(wanted)

    async def _take(self, wanted: int) -> None:
        if wanted <= self._free:
            self._free -= wanted
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self._give(wanted)
            raise

    def _give(self, size: int) -> None:
        """Only those that fit wake up: of a thousand that wait, each would else look at each gift."""
        self._free += size
        still = []
        for wanted, granted in self._waiting:
            if granted.cancelled():
                continue
            if wanted <= self._free:
                self._free -= wanted
                granted.set_result(None)
            else:
                still.append((wanted, granted))
        self._waiting = still
