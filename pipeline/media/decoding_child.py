"""The child process that decodes: `python -m pipeline.media.decoding_child SOCKET SLOT…`, from `child.py`.

It ends with its worker however that dies: a thread waits for the worker's end of the socket to close, and a
decoder that never lets that thread run (it holds Python's lock) is ended by the kernel at its time limit.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import socket
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media.wire import REQUEST, read_request, send_reply

# The worker ends a child that is late; the kernel only does where there is no worker any more.
_GRACE_SECONDS = 1.0


def main(descriptor: int, slots: list[int]) -> None:
    """Answer requests in turn until the worker hangs up; all are descriptors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    connection = socket.socket(fileno=descriptor)
    threading.Thread(target=_end_with_worker, args=(descriptor,), daemon=True).start()
    connection.sendall(b"\n")
    with connection.makefile("rb") as requests:
        while header := requests.read(REQUEST.size):
            slot, job_bytes, data_bytes = REQUEST.unpack(header)
            values, pixels = _answer(requests.read(job_bytes), slots[slot], data_bytes)
            send_reply(connection, slots[slot], values, pixels)
            del pixels


def _answer(job: bytes, slot: int, data_bytes: int) -> tuple[dict[str, Any], npt.NDArray[np.uint8] | None]:
    pixels = None
    try:
        data = read_request(slot, data_bytes)
        decoder, options, seconds, limit = pickle.loads(job)  # noqa: S301 - of our own worker
        _limit_memory(limit)
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
        found = decoder(data, **options)
        pixels, metadata = found if isinstance(found, tuple) else (found, None)
        values: dict[str, Any] = {"shape": pixels.shape, "metadata": metadata}
    except ItemError as error:
        values = {"code": error.code.value, "reason": error.reason}
    except MemoryError:
        values = {"memory": True}
    except ImportError as error:
        values = {"missing": str(error)}
    except Exception as error:  # noqa: BLE001 - what a decoder lets out is its item's failure
        why = f"the decoder failed: {error!r:.200}: re-encode the file; if every file fails so, report it"
        values = {"code": Code.DECODE_CRASH.value, "reason": why}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return values, pixels


def _limit_memory(limit: int) -> None:
    """Bound the private memory of this process; memory shared with the worker is bounded by its size."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _end_with_worker(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))  # and POLLHUP, which needs no asking
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(slot) for slot in sys.argv[2:]])
