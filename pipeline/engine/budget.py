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
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def held(self, size: int) -> AsyncIterator[None]:
        """Hold so many bytes of it, from when they are free."""
        wanted = min(size, self._size)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted
        try:
            yield
        finally:
            async with self._changed:
                self._free += wanted
                self._changed.notify_all()
