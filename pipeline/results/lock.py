"""One driver at a time on a recipe's folder, on any store, with no human needed after a crash."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import ClientError
from botocore.exceptions import BotoCoreError

from pipeline.errors import ConfigError, OutputTakenError
from pipeline.results.holder import Holder
from pipeline.results.lock_file import BEAT_SECONDS, LOOKS, LockFile, is_of, watch
from pipeline.storage import Storage, redact

SETTLE_SECONDS = 0.5
"""After a takeover: of two that take over at once the one that wrote last has it, and both see that."""

STORE_ERRORS = (OSError, BotoCoreError, ClientError)
"""What a store out of reach raises through fsspec: after it the beat goes on."""

_log = logging.getLogger(__name__)


class Lock:
    """Holds `_lock.json` of a folder while the `with` block runs; a thread advances its beat.

    It keeps two runs from paying for the same items. It does not guard the results: every file there is
    written whole under a name that says what it holds, so the worst of two holders costs nothing but time.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        *,
        interval: float = BEAT_SECONDS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file = LockFile(storage, folder)
        self._holder = Holder.this_process(interval)
        self._wait = wait
        self._ended = threading.Event()
        self._taken_by: str | None = None
        self._thread = threading.Thread(target=self._beat, name="framescribe-lock", daemon=True)

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ConfigError: a living run holds it.
        """
        while not self._file.create(self._holder):
            seen = self._file.read()
            now = watch(self._file, seen, self._wait) if seen is not None else None
            if now is None:
                continue
            if now != seen:
                raise ConfigError([self._refusal(now)])
            self._file.replace(self._holder)
            self._wait(SETTLE_SECONDS)
            there = self._file.read()
            if there is not None and is_of(there, self._holder):
                break
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        try:
            self._file.remove(self._holder)
        except STORE_ERRORS as problem:
            _log.warning("%s stays, and passes on by itself: %s", redact(self._file.uri), problem)

    @property
    def run(self) -> str:
        """What the lock says this run is called: its UTC time and something unique."""
        return self._holder.run

    def check(self) -> None:
        """Go on only while the lock is held.

        Raises:
            OutputTakenError: another run took it over, because this one seemed dead.
        """
        if self._taken_by is not None:
            raise OutputTakenError(
                f"{redact(self._file.folder)} was taken over by {self._taken_by}, because this run stood still "
                "for too long (suspended, or cut off from the store); that run goes on with what is durable"
            )

    def _beat(self) -> None:
        while not self._ended.wait(self._holder.interval):
            try:
                if not self._advance():
                    return
            except STORE_ERRORS as error:
                _log.warning("%s cannot be written, trying again: %s", redact(self._file.uri), error)

    def _advance(self) -> bool:
        there = self._file.read()
        if there is not None and not is_of(there, self._holder):
            self._taken_by = str(Holder.of(there) or "another run")
            return False
        self._holder = self._holder.next_beat()
        if there is not None:
            self._file.replace(self._holder)
        else:
            self._file.create(self._holder)
        return True

    def _refusal(self, data: bytes) -> str:
        holder = Holder.of(data)
        seconds = math.ceil(LOOKS / 2 * (holder.interval if holder else BEAT_SECONDS) + SETTLE_SECONDS)
        return (
            f"output.uri: {redact(self._file.folder)} is in use by {holder or 'another run'}; wait for its end "
            f"or stop it (a run that died is succeeded within {seconds} s, with nothing to clean up)"
        )
