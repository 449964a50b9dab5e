"""Bytes of a file by offset, fetched in requests as large as the reader's way through it deserves."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO


class Window:
    """The bytes [`start`, `stop`) of a file, for a reader that only goes forward.

    `ahead` says how many bytes to fetch at least, told the offset and how far it lies behind what was read
    last: a reader of everything takes large blocks, one that walks from header to header small ones.
    """

    def __init__(self, source: BinaryIO, start: int, stop: int, ahead: Callable[[int, int], int]) -> None:
        self._source = source
        self._ahead = ahead
        self._begin = self._end = start
        self._data = b""
        self.stop = stop

    def read(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes.

        Raises:
            EOFError: the file, or the window, ends before.
        """
        end = offset + count
        if end > self.stop:
            raise EOFError(f"bytes {offset} to {end} are wanted, and it ends at byte {self.stop}")
        if not self._begin <= offset or end > self._end:
            self._fetch(offset, end)
        return self._data[offset - self._begin : end - self._begin]

    def read_some(self, offset: int, least: int, most: int) -> bytes:
        """From `least` to `most` bytes: as many as are there once `least` are.

        Raises:
            EOFError: as `read`.
        """
        self.read(offset, least)
        begin = offset - self._begin
        return self._data[begin : begin + most]

    def _fetch(self, offset: int, end: int) -> None:
        kept = self._data[offset - self._begin :] if self._begin <= offset < self._end else b""
        first = offset + len(kept)
        size = max(end - first, min(self._ahead(offset, max(0, first - self._end)), self.stop - first))
        self._source.seek(first)
        parts = [kept]
        while size:
            part = self._source.read(size)
            if not part:
                raise EOFError(f"the file ends {size} bytes early: it has changed")
            parts.append(part)
            size -= len(part)
        self._data = b"".join(parts)
        self._begin, self._end = offset, offset + len(self._data)
