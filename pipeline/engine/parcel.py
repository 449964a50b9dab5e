"""Values with large arrays, on their way to another process through files in memory.

The arrays are written beside the pickle, in one go, and mapped at the other end. A pipe would carry them
through both interpreters; torch's own sharing writes into a fresh mapping, page fault by page fault, which
takes three times as long (`benchmarks/README.md`).
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import resource
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

_MEMORY = "/dev/shm"
_ALIGNMENT = 64
_FILES = 65_536


@dataclass(frozen=True)
class Parcel:
    """A value on its way. Its file belongs to who opens it.

    Attributes:
        pickled: the value without its arrays.
        path: the file with the arrays; None if there are none.
        spans: the arrays' (offset, bytes) in it.
    """

    pickled: bytes
    path: str | None
    spans: tuple[tuple[int, int], ...]


def parcel_folder() -> Path:
    """A new folder for parcels, in memory where the system has that."""
    return Path(tempfile.mkdtemp(prefix="framescribe-", dir=_MEMORY if os.path.isdir(_MEMORY) else None))


def allow_many_parcels() -> None:
    """Raise this process's limit of open files to `_FILES`, where that is allowed: each open parcel holds one.

    Python's mmap keeps a file descriptor; a shell's usual 1,024 are fewer than an engine has in hand.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def pack_parcel(value: Any, folder: Path) -> Parcel:
    """Write the arrays of a value (NumPy's, torch's on a CPU, Pillow's pictures) into a file of the folder.

    Raises:
        OSError: there is no room for them.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = io.BytesIO()
    _Pickler(pickled, protocol=5, buffer_callback=buffers.append).dump(value)
    if not buffers:
        return Parcel(pickled.getvalue(), None, ())
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        with open(handle, "wb", buffering=0) as file:
            spans = tuple(_write(file, buffer.raw()) for buffer in buffers)
    except OSError:
        os.unlink(path)
        raise
    return Parcel(pickled.getvalue(), path, spans)


def open_parcel(parcel: Parcel) -> Any:
    """The value; its arrays lie in the file's memory, which is free again when they are gone.

    All of it is mapped at once: whoever reads it next (the thread that sends it to the engine) would else stop
    at each page.
    """
    if parcel.path is None:
        return pickle.loads(parcel.pickled)  # noqa: S301 (from a process of ours)
    with open(parcel.path, "r+b") as file:
        os.unlink(parcel.path)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        size = os.fstat(file.fileno()).st_size
        memory = memoryview(mmap.mmap(file.fileno(), size, flags) if size else b"")
    buffers = [memory[start : start + size] for start, size in parcel.spans]
    return pickle.loads(parcel.pickled, buffers=buffers)  # noqa: S301


def _write(file: io.FileIO, data: memoryview) -> tuple[int, int]:
    start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    file.seek(start)
    written = 0
    while written < len(data):
        written += file.write(data[written:])
    return start, len(data)


class _Pickler(pickle.Pickler):
    """Makes NumPy arrays, which pickle apart from the rest, of what does not by itself."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Image.Image) and value.mode == "RGB":
            return Image.fromarray, (np.asarray(value),)
        kind = type(value)
        if kind.__module__ == "torch" and kind.__name__ == "Tensor" and value.device.type == "cpu":
            flat = value.detach().contiguous().flatten()
            return _tensor, (_bytes_of(flat), str(value.dtype).removeprefix("torch."), tuple(value.shape))
        return NotImplemented


def _bytes_of(flat: Any) -> Any:
    import torch

    return flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)


def _tensor(data: np.ndarray[Any, Any], dtype: str, shape: Sequence[int]) -> Any:
    import torch

    if not data.size:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.from_numpy(data).view(getattr(torch, dtype)).reshape(shape)
