"""Decoding in a child process: whatever the bytes of a file do to a decoder, they cost that one item.

A worker that asks from two threads has the next file in the child's hands while it takes the last one's pixels,
so that the child never waits (`benchmarks/media_isolation.py` has what that costs and brings).
"""

from __future__ import annotations

import atexit
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media.child import Child, cause_of
from pipeline.media.wire import read_reply, shared_memory, trim_memory

Pixels: TypeAlias = npt.NDArray[np.uint8]
Decoder: TypeAlias = Callable[..., "Pixels | tuple[Pixels, dict[str, Any]]"]
_Found: TypeAlias = "tuple[Pixels, dict[str, Any] | None]"

AT_ONCE = 2
"""Files in the child's hands: one that it decodes, and the next."""


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


@dataclass(eq=False)
class _Request:
    """A file on its way through a child; `first`: no other was sent to that child before."""

    limits: Limits
    slot: int
    child: Child
    first: bool


class IsolatedDecoder:
    """One child process that decodes item after item; it is started on first use and after each death.

    An item is blamed for a death, or for the memory running out, only if the child was fresh, since the items
    before may have damaged or filled it: it gets a second, fresh one, alone. An item that was in the hands of a
    child that died of another is sent again. Thread safe: AT_ONCE items at a time, answered in turn.
    """

    def __init__(self) -> None:
        self._slots = [shared_memory() for _ in range(AT_ONCE)]
        self._free = list(range(AT_ONCE))
        self._queue: deque[_Request] = deque()
        self._child: Child | None = None
        self._alone = False
        self._changed = threading.Condition()

    def decode(self, decoder: Decoder, data: bytes, options: dict[str, Any], limits: Limits) -> _Found:
        """Return what `decoder(data, **options)` gives: pixels, and its metadata where it has some.

        `decoder` is a function of a module, since the child imports it.
        Raises ItemError: what the decoder raises, DECODE_CRASH, DECODE_TIMEOUT, or TOO_LARGE for memory.
        RuntimeError: no child can be started here, which no other item would change.
        """
        job = pickle.dumps((decoder, options, limits.seconds, limits.memory))
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._free and not self._alone)
                request = self._send(job, data, limits)
            try:
                found = self._answered(request)
            except _ChildFailed as failure:
                if request.first:
                    raise failure.error from None
                found = self._fresh(job, data, limits)
            if isinstance(found, ItemError):
                raise found
            if found is not None:
                return found

    def close(self) -> None:
        """End the child, if there is one; the next item starts another."""
        with self._changed:
            self._end_child()

    @property
    def pid(self) -> int | None:
        """The child's process id, if there is a child."""
        return self._child.pid if self._child else None

    def _fresh(self, job: bytes, data: bytes, limits: Limits) -> _Found | ItemError | None:
        """What comes of an item in a child of its own, while no other item is on its way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: not self._queue)
        try:
            with self._changed:
                self._end_child()
                request = self._send(job, data, limits)
            return self._answered(request)
        except _ChildFailed as failure:
            raise failure.error from None
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()

    def _send(self, job: bytes, data: bytes, limits: Limits) -> _Request:
        if self._child is None:
            self._child = Child(self._slots)
        child = self._child
        request = _Request(limits, self._free.pop(), child, child.sent == 0)
        try:
            child.send(request.slot, job, data)
        except BaseException:  # no memory for the file, or an interrupt: half a request may be on its way
            self._end_child()
            self._free.append(request.slot)
            raise
        self._queue.append(request)
        return request

    def _answered(self, request: _Request) -> _Found | ItemError | None:
        """Wait for the request's turn, and return its answer; None when another's failure has ended its child.

        Whatever it raises has ended the child: late, dead, out of memory, or this process is interrupted.
        """
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._queue[0] is request)
                if self._child is not request.child:
                    return None
            return self._received(request)
        except BaseException:
            with self._changed:
                if self._child is request.child:
                    self._end_child()
            raise
        finally:
            with self._changed:
                self._queue.remove(request)
                trim_memory(self._slots[request.slot].fileno())
                self._free.append(request.slot)
                self._changed.notify_all()

    def _received(self, request: _Request) -> _Found | ItemError:
        limits, child = request.limits, request.child
        try:
            header = child.receive(limits.seconds)
        except TimeoutError:
            raise _too_slow(limits) from None
        if header is None:
            raise _death(child, limits)
        try:
            pixels, reply = read_reply(self._slots[request.slot], header)
            if "shape" in reply:
                return pixels.reshape(reply["shape"]), reply["metadata"]
            if reply.get("memory"):
                why = f"it takes more than {limits.memory:,} bytes to decode (media.decode_memory)"
                raise _ChildFailed(ItemError(Code.TOO_LARGE, why))
            if "missing" in reply:
                raise RuntimeError(f"the decoder cannot be imported: {reply['missing']}")
            return ItemError(Code(reply["code"]), reply["reason"])
        except (ValueError, KeyError):  # a reply that makes no sense: the child's memory is damaged
            raise _death(child, limits) from None

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child = None


def _death(child: Child, limits: Limits) -> Exception:
    status = child.death()
    if status == -signal.SIGALRM:  # its own time limit, where this process was late
        return _too_slow(limits)
    why = f"the decoder died of this file ({cause_of(status)}): replace or re-encode it"
    return _ChildFailed(ItemError(Code.DECODE_CRASH, why))


def _too_slow(limits: Limits) -> ItemError:
    why = f"not decoded after {limits.seconds:g} s (media.decode_seconds): replace or re-encode it"
    return ItemError(Code.DECODE_TIMEOUT, why)


_decoder = IsolatedDecoder()
atexit.register(_decoder.close)


def decode_isolated(decoder: Decoder, data: bytes, options: dict[str, Any], limits: Limits) -> _Found:
    """`IsolatedDecoder.decode` in the one child that this process keeps between items and tasks."""
    return _decoder.decode(decoder, data, options, limits)
