"""The worker's end of a decoding child: one process, which answers requests in the order in which they come."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import IO

from pipeline.media.wire import REPLY, REQUEST, write_memory

# Usually 0.1 s; a node whose disk or cores are overrun takes its time.
_START_SECONDS = 120.0
_MODULE = "pipeline.media.decoding_child"
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    # Else glibc gives freed memory back at once, and asking for it again takes as long as decoding a WebP.
    "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20),
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
}
"""What the child has in its environment besides the worker's own."""


class Child:
    """A child process that has started. `sent` counts the requests that it was sent."""

    def __init__(self, slots: list[IO[bytes]]) -> None:
        """Start it; `slots` are the memories that it shares. Raises RuntimeError when it does not come up."""
        self._slots = slots
        self.sent = 0
        self._socket, theirs = socket.socketpair()
        memories = [str(slot.fileno()) for slot in slots]
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs:
            # -P: nothing is imported from the working folder. Not a fork: this process has threads.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), *memories],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *map(int, memories)],
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths},
            )
        self._socket.settimeout(_START_SECONDS)
        try:
            ready = self._socket.recv(1)
        except OSError:
            ready = b""
        if not ready:
            self.end()
            raise RuntimeError("the decoding process does not start: its own message is on stderr")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, slot: int, job: bytes, data: bytes) -> None:
        """Send a request, the file's bytes through its slot. A child that has died is found by `receive`."""
        self.sent += 1
        write_memory(self._slots[slot].fileno(), memoryview(data), 0)
        try:
            self._socket.sendall(REQUEST.pack(slot, len(job), len(data)) + job)
        except OSError:
            return

    def receive(self, seconds: float) -> bytes | None:
        """Return the header of the next reply; None when the child has died. Raises TimeoutError."""
        self._socket.settimeout(max(0.001, seconds))
        try:
            header = self._socket.recv(REPLY.size, socket.MSG_WAITALL)
        except TimeoutError:
            raise
        except OSError:
            return None
        return header if len(header) == REPLY.size else None

    def end(self) -> None:
        """End it, whatever it does."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def death(self) -> int:
        """Wait for it to die, end it if it does not, and return its exit status (negative: a signal)."""
        self._socket.close()
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its connection, and lives
            status = 0
        self.end()
        return status


def cause_of(status: int) -> str:
    """What an exit status says, for people."""
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"
