"""Decoding in a child process: whatever the bytes of a file do to a decoder, they cost that one item.

The way there and back costs 8 % on images of 1 megapixel, and its own malloc settings bring 20 %: 1.1 times
what a worker decodes by itself (`benchmarks/media_isolation.py`, two shared cores).
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media.wire import REPLY, REQUEST, read_reply, shared_memory

Pixels: TypeAlias = npt.NDArray[np.uint8]
Decoder: TypeAlias = Callable[..., "Pixels | tuple[Pixels, dict[str, Any]]"]
# Usually 0.1 s; a node whose disk or cores are overrun takes its time.
_START_SECONDS = 120.0
_CHILD_MODULE = "pipeline.media.decoding_child"
_CHILD_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    # Else glibc gives freed memory back at once, and asking for it again takes as long as decoding a WebP.
    "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20),
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
}


@dataclass(frozen=True)
class Limits:
    """What decoding one item may take: `seconds` of time, and `memory` in bytes for the whole child."""

    seconds: float
    memory: int


class _ChildFailed(Exception):
    """The child died, or ran out of memory; `error` is what to say if it was this item's doing."""

    def __init__(self, error: ItemError) -> None:
        super().__init__(error)
        self.error = error


class IsolatedDecoder:
    """One child process that decodes item after item; it is started on first use and after each death.

    An item is blamed for a death, or for the memory running out, only if the child was fresh, since the items
    before may have damaged or filled it: it gets a second, fresh one. Thread safe: one item at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._memory = shared_memory()

    def decode(
        self, decoder: Decoder, data: bytes, options: dict[str, Any], limits: Limits
    ) -> tuple[Pixels, dict[str, Any] | None]:
        """Return what `decoder(data, **options)` gives: pixels, and its metadata where it has some.

        `decoder` is a function of a module, since the child imports it.
        Raises ItemError: what the decoder raises, DECODE_CRASH, DECODE_TIMEOUT, or TOO_LARGE for memory.
        RuntimeError: no child can be started here, which no other item would change.
        """
        job = pickle.dumps((decoder, options, limits.seconds, limits.memory))
        with self._lock:
            if self._child is not None:
                with suppress(_ChildFailed):
                    return self._once(job, data, limits)
            try:
                return self._once(job, data, limits)
            except _ChildFailed as failure:
                raise failure.error from None

    def close(self) -> None:
        """End the child, if there is one; the next item starts another."""
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = self._socket = None

    @property
    def pid(self) -> int | None:
        """The child's process id, if there is a child."""
        return self._child.pid if self._child else None

    def _once(self, job: bytes, data: bytes, limits: Limits) -> tuple[Pixels, dict[str, Any] | None]:
        connection = self._socket or self._start()
        deadline = time.monotonic() + limits.seconds
        try:
            for part in (REQUEST.pack(len(job), len(data)), job, data):
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                connection.sendall(part)
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            header = connection.recv(REPLY.size, socket.MSG_WAITALL)
        except TimeoutError:
            self.close()
            raise _too_slow(limits) from None
        except OSError:  # it died while being sent to
            header = b""
        except BaseException:  # an interrupt: the child's answer would be taken for that of the next item
            self.close()
            raise
        if len(header) != REPLY.size:
            raise _ChildFailed(self._death(limits))
        try:
            return self._answer(*read_reply(self._memory, header), limits)
        except (ValueError, KeyError):  # a reply that makes no sense: the child's memory is damaged
            raise _ChildFailed(self._death(limits)) from None

    def _answer(
        self, pixels: Pixels, reply: dict[str, Any], limits: Limits
    ) -> tuple[Pixels, dict[str, Any] | None]:
        if "shape" in reply:
            return pixels.reshape(reply["shape"]), reply["metadata"]
        if reply.get("memory"):
            self.close()
            why = f"it takes more than {limits.memory:,} bytes to decode (media.decode_memory)"
            raise _ChildFailed(ItemError(Code.TOO_LARGE, why))
        if "missing" in reply:
            raise RuntimeError(f"the decoder cannot be imported: {reply['missing']}")
        raise ItemError(Code(reply["code"]), reply["reason"])

    def _death(self, limits: Limits) -> ItemError:
        assert self._child is not None
        assert self._socket is not None
        self._socket.close()
        try:
            status = self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its connection, and lives
            status = 0
        self.close()
        if status == -signal.SIGALRM:  # its own time limit, where this process was late
            raise _too_slow(limits)
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return ItemError(Code.DECODE_CRASH, f"the decoder died of this file ({name}): replace or re-encode it")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        memory = self._memory.fileno()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs:
            # -P: nothing is imported from the working folder. Not a fork: this process has threads.
            self._child = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "pipeline.media.decoding_child",
                    str(theirs.fileno()),
                    str(memory),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), memory],
                env={**os.environ, **_CHILD_ENVIRONMENT, "PYTHONPATH": paths},
            )
        ours.settimeout(_START_SECONDS)
        self._socket = ours
        try:
            ready = ours.recv(1)
        except OSError:
            ready = b""
        if not ready:
            self.close()
            raise RuntimeError("the decoding process does not start: its own message is on stderr")
        return ours


def _too_slow(limits: Limits) -> ItemError:
    why = f"not decoded after {limits.seconds:g} s (media.decode_seconds): replace or re-encode it"
    return ItemError(Code.DECODE_TIMEOUT, why)


_decoder = IsolatedDecoder()
atexit.register(_decoder.close)


def decode_isolated(
    decoder: Decoder, data: bytes, options: dict[str, Any], limits: Limits
) -> tuple[Pixels, dict[str, Any] | None]:
    """`IsolatedDecoder.decode` in the one child that this process keeps between items and tasks."""
    return _decoder.decode(decoder, data, options, limits)
