"""Who holds a lock: one process, told apart from every other that was or will be."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True)
class Holder:
    """What `_lock.json` says.

    Attributes:
        run: unique to one run.
        host: the machine's name, for people.
        machine: boot id and PID namespace: where equal, process numbers mean the same. None: not Linux.
        pid, process_start: the process; the start in clock ticks since boot, since numbers are used again.
        started: when, by the holder's own clock, for people; never compared.
        interval: seconds between two beats.
        beat: advanced once an interval for as long as the holder lives.
    """

    run: str
    host: str
    machine: str | None
    pid: int
    process_start: int | None
    started: str
    interval: float
    beat: int

    @classmethod
    def this_process(cls, interval: float) -> Holder:
        """A new run in this process."""
        now = time.gmtime()
        return cls(
            run=f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{uuid.uuid4().hex[:8]}",
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            process_start=_process_start(os.getpid()),
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            interval=interval,
            beat=0,
        )

    @classmethod
    def of(cls, data: bytes) -> Holder | None:
        """The holder that a lock's bytes name; None if they name none, as after a full disk."""
        try:
            found = json.loads(data)
            holder = cls(**{field.name: found[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError):
            return None
        return holder if isinstance(holder.interval, int | float) else None

    @property
    def data(self) -> bytes:
        """The bytes of the lock."""
        return json.dumps(asdict(self), indent=1).encode()

    def next_beat(self) -> Holder:
        """The same holder, one beat later."""
        return replace(self, beat=self.beat + 1)

    def is_known_dead(self) -> bool:
        """Whether its process ran on this machine and is gone; False where that cannot be told."""
        here = (socket.gethostname(), _machine())
        if self.machine is None or (self.host, self.machine) != here:
            return False
        return _process_start(self.pid) != self.process_start

    def __str__(self) -> str:
        return f"run {self.run} (host {self.host}, process {self.pid}) since {self.started}"


def _machine() -> str | None:
    try:
        return f"{_BOOT_ID.read_text().strip()} {os.readlink(_PID_NAMESPACE)}"
    except OSError:
        return None


def _process_start(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if there is none, or it is dead but not buried."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *numbers = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(numbers[18])
