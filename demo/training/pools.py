"""The newest samples of every grid, kept on the device; training draws its batches from them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from demo.training.chunks import Chunk
from demo.training.grids import Grid
from demo.training.prompt import LONGEST_TAIL

_MOST_SAMPLES = 4096  # of a grid


@dataclass(frozen=True)
class Batch:
    """Samples of one grid, on the device."""

    grid: Grid
    pixels: Tensor
    """uint8 [samples, *grid.shape]"""
    tokens: Tensor
    """[samples, tail]"""
    predicts: Tensor
    """bool [samples, tail - 1]: whether what follows this token belongs to the answer."""
    labels: Tensor
    """[samples, patches]"""
    orders: Tensor
    """[samples, patches]"""

    def __len__(self) -> int:
        return len(self.pixels)


class Pool:
    """The samples of one grid: a ring, the oldest overwritten first."""

    def __init__(self, grid: Grid, capacity: int, device: torch.device) -> None:
        self.grid = grid
        self.device = device
        self.count = 0
        self._next = 0
        self._capacity = capacity
        self._pixels = torch.empty((capacity, *grid.shape), dtype=torch.uint8, device=device)
        self._labels = torch.empty((capacity, grid.patches), dtype=torch.uint8, device=device)
        self._orders = torch.empty((capacity, grid.patches), dtype=torch.uint8, device=device)
        self._tokens = np.zeros((capacity, LONGEST_TAIL), np.int16)
        self._starts = np.zeros(capacity, np.int16)
        self._lengths = np.zeros(capacity, np.int16)

    def put(self, chunk: Chunk, pixels: Tensor) -> None:
        """Takes in a chunk; the copy of its pixels may still be under way on return."""
        first = self._next if self._next + len(chunk) <= self._capacity else 0
        last = first + len(chunk)
        self._pixels[first:last].copy_(pixels, non_blocking=True)
        self._labels[first:last].copy_(torch.from_numpy(chunk.labels), non_blocking=True)
        self._orders[first:last].copy_(torch.from_numpy(chunk.orders), non_blocking=True)
        self._tokens[first:last] = chunk.tokens
        self._starts[first:last] = chunk.starts
        self._lengths[first:last] = chunk.lengths
        self._next = last
        self.count = max(self.count, last)

    def take(self, indices: NDArray[np.int64]) -> Batch:
        """The samples at `indices`, their tails cut to the longest, in steps of 8 tokens."""
        starts = self._starts[indices].astype(np.int64)[:, None]
        lengths = self._lengths[indices].astype(np.int64)[:, None]
        tail = min(LONGEST_TAIL, (int(lengths.max()) + 7) // 8 * 8)
        places = np.arange(tail - 1)[None]
        predicts = (places >= starts - 1) & (places < lengths - 1)
        chosen = self._to_device(torch.from_numpy(indices))
        return Batch(
            self.grid,
            self._pixels[chosen],
            self._to_device(torch.from_numpy(self._tokens[indices, :tail].astype(np.int64))),
            self._to_device(torch.from_numpy(predicts)),
            self._labels[chosen],
            self._orders[chosen],
        )

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)


class Pools:
    """A pool for each grid that samples came of."""

    def __init__(self, device: torch.device, pool_bytes: int) -> None:
        self._device = device
        self._pool_bytes = pool_bytes
        self._pools: dict[Grid, Pool] = {}
        self.drawn = 0

    def put(self, chunk: Chunk, pixels: Tensor) -> None:
        """Takes in a chunk and its pixels."""
        if chunk.grid not in self._pools:
            capacity = max(len(chunk), min(_MOST_SAMPLES, self._pool_bytes // chunk.grid.bytes))
            self._pools[chunk.grid] = Pool(chunk.grid, capacity, self._device)
        self._pools[chunk.grid].put(chunk, pixels)
        self.drawn += len(chunk)

    def find(self, grid: Grid, least: int) -> Pool | None:
        """The pool of the grid, if it has `least` samples."""
        pool = self._pools.get(grid)
        return pool if pool and pool.count >= least else None
