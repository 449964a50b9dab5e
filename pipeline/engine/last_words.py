"""Hears what an engine's processes write, since only there they say why they died."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT = 256 * 2**10
_EXCEPTION = re.compile(
    r"^.*?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit): .+)$", re.MULTILINE
)
_PREFIX = re.compile(r"^(?:\([^)]*\) )?(?:(?:ERROR|WARNING|CRITICAL) [\d-]+ [\d:.]+ \[[^\]]*\] )?")
_POINTS_ELSEWHERE = re.compile(
    r"see (?:the )?(?:root cause|stack ?trace)|background process|EngineDeadError|CancelledError"
    r"|^RuntimeError: cancelled$",
    re.IGNORECASE,
)


class LastWords:
    """The end of what was written to stdout and stderr, up to 256 KiB; it goes on to where it went before."""

    def __init__(self) -> None:
        self._text = b""
        self._lock = threading.Lock()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Within it, this process's output is heard, and that of processes started in it until they end."""
        with self._heard(1), self._heard(2):
            yield

    @contextmanager
    def _heard(self, stream: int) -> Iterator[None]:
        # A process that is started here has the pipe for all its life, so the thread stays with it.
        old = os.dup(stream)
        reading, writing = os.pipe()
        os.dup2(writing, stream)
        os.close(writing)
        threading.Thread(target=self._copy, args=(reading, os.dup(old)), name="last-words", daemon=True).start()
        try:
            yield
        finally:
            os.dup2(old, stream)
            os.close(old)

    def reason(self) -> str | None:
        """The first exception written that does not point to another; None: there is none."""
        with self._lock:
            text = self._text.decode("utf-8", "replace")
        lines = [_PREFIX.sub("", line) for line in text.splitlines()]
        found = [match.group(1) for line in lines if (match := _EXCEPTION.match(line))]
        telling = [one for one in found if not _POINTS_ELSEWHERE.search(one)]
        return telling[0] if telling else None

    def forget(self) -> None:
        """What was heard so far belongs to the past."""
        with self._lock:
            self._text = b""

    def _copy(self, reading: int, onward: int) -> None:
        while data := os.read(reading, 2**16):
            with self._lock:
                self._text = (self._text + data)[-_KEPT:]
            with contextlib.suppress(OSError):  # nobody reads on: a process must not block on that
                os.write(onward, data)
        os.close(reading)
        os.close(onward)
