"""Moves what the drawing processes deliver to the device, without the GPU waiting for it."""

import time
from collections import deque

import torch

from demo.training.feed import SLOT_BYTES, Feed
from demo.training.pools import Pools

_POLL_SECONDS = 0.005


class Loader:
    """Copies on the training stream; a slot goes back to the drawing processes once its copy has run."""

    def __init__(self, feed: Feed, pools: Pools, device: torch.device) -> None:
        self._feed = feed
        self._pools = pools
        self._memory = torch.frombuffer(feed.memory, dtype=torch.uint8)
        self._is_cuda = device.type == "cuda"
        self._copying: deque[tuple[int, torch.cuda.Event]] = deque()
        if self._is_cuda:
            # Page-locked, or every copy would wait for all the work queued on the GPU.
            torch.cuda.check_error(
                torch.cuda.cudart().cudaHostRegister(self._memory.data_ptr(), self._memory.numel(), 0)
            )

    def load(self, most: int) -> int:
        """Takes in up to `most` chunks that are ready, and returns how many."""
        self._release_copied()
        for count in range(most):
            delivery = self._feed.receive()
            if delivery is None:
                return count
            slot, chunk = delivery
            first = slot * SLOT_BYTES
            pixels = self._memory[first : first + len(chunk) * chunk.grid.bytes]
            self._pools.put(chunk, pixels.view(len(chunk), *chunk.grid.shape))
            self._release_later(slot)
        return most

    def load_first(self, samples: int) -> None:
        """Waits until that many samples have come."""
        while self._pools.drawn < samples:
            if not self.load(8):
                time.sleep(_POLL_SECONDS)

    def _release_later(self, slot: int) -> None:
        if not self._is_cuda:
            self._feed.release(slot)
            return
        event = torch.cuda.Event()
        event.record()
        self._copying.append((slot, event))

    def _release_copied(self) -> None:
        while self._copying and self._copying[0][1].query():
            self._feed.release(self._copying.popleft()[0])
