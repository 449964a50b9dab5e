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
import torch
from PIL import Image

from pipeline.engine.handover import FileTensor, TensorFile

_SMALL = 4096
_FILES = 65_536


@dataclass(frozen=True)
class Parcel:
    """A value on its way. Its files belong to who opens it.

    Attributes:
        pickled: the value without its arrays of more than `_SMALL` bytes.
        files: those arrays, one in each.
    """

    pickled: bytes
    files: tuple[str, ...]


def allow_many_parcels() -> None:
    """Raise this process's limit of open files to `_FILES`, where that is allowed: each open parcel holds one.

    Python's mmap keeps a file descriptor; a shell's usual 1,024 are fewer than an engine has in hand.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def pack_parcel(value: Any, folder: Path) -> Parcel:
    """Write the arrays of a value (NumPy's, torch's on a CPU, Pillow's pictures) into files of the folder.

    Raises:
        OSError: there is no room for them.
    """
    buffers: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        data = buffer.raw()
        if large := data.nbytes > _SMALL:
            buffers.append(data)
        return not large

    pickled = io.BytesIO()
    _Pickler(pickled, protocol=5, buffer_callback=stays).dump(value)
    files: list[str] = []
    try:
        for data in buffers:
            handle, path = tempfile.mkstemp(dir=folder)
            files.append(path)
            with open(handle, "wb", buffering=0) as file:
                _write(file, data)
    except OSError:
        for path in files:
            os.unlink(path)
        raise
    return Parcel(pickled.getvalue(), tuple(files))


def open_parcel(parcel: Parcel, by_file: bool = False) -> Any:
    """The value; its arrays lie in the files' memory, which is free again when they are gone.

    They are mapped with all their pages: whoever reads them next (the thread that sends them to the engine)
    would else stop at each. Or, `by_file`, with none: tensors are `FileTensor`s, for another process to map.
    """
    buffers: list[mmap.mmap] = [TensorFile.of(path) if by_file else _mapped(path) for path in parcel.files]
    return pickle.loads(parcel.pickled, buffers=buffers)  # noqa: S301 (from a process of ours)


def _mapped(path: str) -> mmap.mmap:
    with open(path, "r+b") as file:
        os.unlink(path)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        return mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size, flags)


def _write(file: io.FileIO, data: memoryview) -> None:
    written = 0
    while written < len(data):
        written += file.write(data[written:])


class _Pickler(pickle.Pickler):
    """Makes NumPy arrays, which pickle apart from the rest, of what does not by itself."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Image.Image and value.mode == "RGB":
            return Image.fromarray, (np.asarray(value),)
        if type(value) is torch.Tensor and value.device.type == "cpu":
            flat = value.detach().contiguous().flatten()
            data: Any = flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)
            return _tensor, (pickle.PickleBuffer(data), value.dtype, tuple(value.shape))
        return NotImplemented


def _tensor(data: Any, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    if isinstance(data, TensorFile):
        return FileTensor.of(data, dtype, shape)
    return (torch.frombuffer(data, dtype=dtype) if len(data) else torch.empty(0, dtype=dtype)).reshape(shape)
