"""Tensors that vLLM's core maps from the memory file that a render worker wrote, so that nobody copies them.

vLLM sends tensors to its core through a socket, or, with `mm_tensor_ipc: torch_shm`, through a queue of
torch's, which copies what is not in shared memory yet. A `FileTensor` says that it is, and goes through that
queue as the name of its file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
from collections.abc import Sequence
from typing import Any

import torch

MEMORY = "/dev/shm"
_PAGE = 4096


def shared_memory() -> int:
    """How many bytes of files this system keeps in memory at most."""
    return shutil.disk_usage(MEMORY).total if os.path.isdir(MEMORY) else 0


class TensorFile(mmap.mmap):
    """A file's memory. The file goes with it, unless it was handed over: then it belongs to who opens it."""

    path: str
    handed_over = False

    @classmethod
    def of(cls, path: str) -> TensorFile:
        """Map the file, whose pages are not touched."""
        with open(path, "r+b") as file:
            memory = cls(file.fileno(), os.fstat(file.fileno()).st_size)
        memory.path = path
        return memory

    def __del__(self) -> None:
        if not self.handed_over:
            with contextlib.suppress(FileNotFoundError):  # an engine's end removes the folder
                os.unlink(self.path)


class FileTensor(torch.Tensor):  # type: ignore[misc]
    """A tensor that is all of a `TensorFile`."""

    file: TensorFile
    __torch_function__ = torch._C._disabled_torch_function_impl  # what is computed from it is a plain tensor

    @classmethod
    def of(cls, file: TensorFile, dtype: torch.dtype, shape: Sequence[int]) -> FileTensor:
        """The file's bytes as a tensor."""
        tensor: FileTensor = torch.frombuffer(file, dtype=dtype).reshape(shape).as_subclass(cls)
        tensor.file = file
        return tensor

    def is_shared(self) -> bool:
        """Yes: vLLM would else copy it."""
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.file.handed_over:  # for the second of several answers to one request
            return torch.Tensor.clone, (self.as_subclass(torch.Tensor),)
        self.file.handed_over = True
        return open_tensor, (self.file.path, self.dtype, tuple(self.shape))


def can_hand_over(engine_args: dict[str, Any]) -> bool:
    """Whether vLLM takes tensors through a queue where it runs with these arguments: one process, spawned."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    method = os.environ.get("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    return (
        method == "spawn"
        and "mm_tensor_ipc" not in engine_args
        and all(engine_args.get(size, 1) == 1 for size in sizes)
    )


def open_tensor(path: str, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The tensor in the file, which is removed: its memory is free again when the tensor is gone."""
    size = os.path.getsize(path)
    data = torch.from_file(path, shared=True, size=size, dtype=torch.uint8)
    os.unlink(path)
    data[::_PAGE].sum()  # touch each page here, without the interpreter's lock, not on the core's main thread
    return data.view(dtype).reshape(shape)
