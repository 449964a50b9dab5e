"""What goes between a worker and its decoding child: words through a socket, bytes through shared memory.

A request is REQUEST and the pickled job on the socket, while the file's bytes lie in shared memory: in one of a
few slots. A reply is REPLY on the socket, while the pixels and, after them, JSON lie in the same slot. The
worker unpickles nothing, since hostile bytes went through the child. The memory is written and read as a file,
never mapped: a child that shortens it costs the worker a short read and no SIGBUS. It is used again and again,
because new pages are what is dear: with a new one for each picture a reply of 3 MB took 2.4 ms, so 1.0 ms.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import tempfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

REQUEST = struct.Struct("<QQQ")
"""The slot, bytes of the job, bytes of the file."""
REPLY = struct.Struct("<QQ")
"""Bytes of the pixels, bytes of the JSON after them."""

# What a worker keeps of each slot between items; a long clip may take 2 GiB.
_KEPT = 32 * 2**20


def shared_memory() -> IO[bytes]:
    """Return new memory as an unnamed file: a child that inherits its descriptor shares it."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("framescribe-pixels"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)  # not Linux


def send_reply(
    connection: socket.socket, memory: int, values: dict[str, Any], pixels: npt.NDArray[np.uint8] | None
) -> None:
    """Send JSON `values` and pixels, the child's side; `memory` is the descriptor of the shared memory."""
    text = json.dumps(values).encode()
    raw = np.ascontiguousarray(pixels).data.cast("B") if pixels is not None else memoryview(b"")
    write_memory(memory, raw, 0)
    write_memory(memory, memoryview(text), len(raw))
    connection.sendall(REPLY.pack(len(raw), len(text)))


def read_reply(memory: IO[bytes], header: bytes) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Return flat pixels and the JSON of a reply, the worker's side.

    Raises ValueError for a reply that makes no sense.
    """
    pixel_bytes, text_bytes = REPLY.unpack(header)
    if os.fstat(memory.fileno()).st_size < pixel_bytes + text_bytes:
        raise ValueError("the decoding process sent less than it said")
    pixels = np.empty(pixel_bytes, np.uint8)
    memory.seek(0)
    _fill(memory, pixels.data)
    text = bytearray(text_bytes)
    _fill(memory, memoryview(text))
    values: dict[str, Any] = json.loads(text)
    return pixels, values


def write_memory(memory: int, rest: memoryview, at: int) -> None:
    """Write bytes to shared memory (its descriptor) from the place `at`."""
    while rest:
        written = os.pwrite(memory, rest, at)
        rest, at = rest[written:], at + written


def read_request(memory: int, count: int) -> bytes:
    """Return the file's bytes of a request, the child's side."""
    parts, at = [], 0
    while at < count:
        parts.append(os.pread(memory, count - at, at))
        if not parts[-1]:
            raise ValueError("the shared memory is shorter than its request")
        at += len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def trim_memory(memory: int) -> None:
    """Give back what a large item has left of shared memory."""
    if os.fstat(memory).st_size > _KEPT:
        os.ftruncate(memory, _KEPT)


def _fill(memory: IO[bytes], rest: memoryview) -> None:
    while rest:
        count = memory.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise ValueError("the shared memory is shorter than its reply")
        rest = rest[count:]
