"""The file of a lock, on any store: made by one contender only, and watched without comparing clocks."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.results.holder import Holder
from pipeline.storage import Storage, join, scheme_of

LOCK_FILE = "_lock.json"

BEAT_SECONDS = 5.0
"""Between two beats: 1,440 small requests an hour, and a crashed run is succeeded in seconds."""

LOOKS = 5
"""Looks at a lock, half an interval apart, until it counts as standing still: two missed beats and a half."""


@dataclass(frozen=True)
class LockFile:
    """`_lock.json` of a folder."""

    storage: Storage
    folder: str

    @property
    def uri(self) -> str:
        """Where it is."""
        return join(self.folder, LOCK_FILE)

    def read(self) -> bytes | None:
        """What it holds; None if nobody has the lock."""
        try:
            return self.storage.read(self.uri)
        except FileNotFoundError:
            return None

    def create(self, holder: Holder) -> bool:
        """Make the file if there is none, as one step of the store. Returns whether the holder has it now.

        Raises:
            OSError: as the store answers, when there is no lock of another either.
        """
        try:
            self._put_new(holder.data)
        except OSError as error:
            # Refused (412, 409), or sent twice after a timeout: what counts is what is there now.
            there = self.read()
            if there is None and error.errno == errno.ENOSYS:
                self.storage.put(self.uri, holder.data)
                return True
            if there is None and not isinstance(error, FileExistsError):
                raise
            return there is not None and is_of(there, holder)
        return True

    def replace(self, holder: Holder) -> None:
        """Write the holder over whatever is there."""
        self.storage.put(self.uri, holder.data)

    def remove(self, holder: Holder) -> None:
        """Give the lock back, if it still is the holder's."""
        there = self.read()
        if there is not None and is_of(there, holder):
            self.storage.remove([self.uri])

    def _put_new(self, data: bytes) -> None:
        fs, path = self.storage.filesystem(self.uri)
        if scheme_of(self.uri) != "file":
            fs.pipe_file(path, data, mode="create")
            return
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)


def is_of(data: bytes, holder: Holder) -> bool:
    """Whether a lock's bytes were written by the holder's run, at whatever beat."""
    found = Holder.of(data)
    return found is not None and found.run == holder.run


def watch(file: LockFile, seen: bytes, wait: Callable[[float], None] = time.sleep) -> bytes | None:
    """Look at a lock until it changes, is gone, or has stood still for so long that its holder is dead.

    Nothing is compared but the file with itself, so the clocks of the machines do not matter.

    Returns:
        What it holds now: `seen` if its holder is dead, None if it was released.
    """
    holder = Holder.of(seen)
    if holder is not None and holder.is_known_dead():
        return seen
    interval = min(holder.interval, 60.0) if holder else BEAT_SECONDS
    for _ in range(LOOKS):
        wait(interval / 2)
        now = file.read()
        if now != seen:
            return now
    return seen
