"""What goes between a worker and its decoding child: requests through a socket, pixels through shared memory.

A request is REQUEST, the pickled job, and the file's bytes. A reply is REPLY with one file descriptor:
anonymous memory that holds the pixels and, after them, JSON. The worker maps it, so pixels are not copied;
and it unpickles nothing, since hostile bytes went through the child.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

REQUEST = struct.Struct("<QQ")
"""Bytes of the job, bytes of the file."""
REPLY = struct.Struct("<QQ")
"""Bytes of the pixels, bytes of the JSON after them."""

# A mapping keeps its descriptor open. The lowest free number is given out, so it tells how many are open:
# from here on pixels are copied, well before the usual limit of 1,024.
_MAPPED_BELOW = 512


def send_reply(connection: socket.socket, values: dict[str, Any], pixels: npt.NDArray[np.uint8] | None) -> None:
    """Send JSON `values` and pixels, the child's side."""
    text = json.dumps(values).encode()
    raw = memoryview(np.ascontiguousarray(pixels)).cast("B") if pixels is not None else memoryview(b"")
    descriptor = _anonymous_memory()
    with open(descriptor, "wb") as file:
        file.write(raw)
        file.write(text)
        file.flush()
        socket.send_fds(connection, [REPLY.pack(len(raw), len(text))], [descriptor])


def mapped(descriptor: int, pixel_bytes: int, text_bytes: int) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Return flat pixels and the JSON of a reply, the worker's side; `descriptor` is closed."""
    with open(descriptor, "rb") as file:
        size = pixel_bytes + text_bytes
        if os.fstat(descriptor).st_size < size:  # reading past the end would be a SIGBUS
            raise RuntimeError("the decoding process sent less than it said")
        if descriptor < _MAPPED_BELOW:
            whole = np.frombuffer(mmap.mmap(descriptor, size, prot=mmap.PROT_READ), np.uint8)
        else:
            whole = np.fromfile(file, np.uint8, size)
    values: dict[str, Any] = json.loads(whole[pixel_bytes:].tobytes())
    return whole[:pixel_bytes], values


def _anonymous_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("framescribe-pixels")
    with tempfile.TemporaryFile() as file:  # not Linux
        return os.dup(file.fileno())
