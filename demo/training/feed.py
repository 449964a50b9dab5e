"""Processes that draw samples without end into shared memory."""

import mmap
import multiprocessing as mp
import os
import random
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from demo.training.chunks import Chunk, TailEncoder, draw_chunk, draw_of_kind
from demo.training.grids import pick_grid
from demo.training.samples import Bytes, Variety

SLOT_BYTES = 10 << 20
_SLOTS = 48
_MOST_SAMPLES = 48  # of a chunk
_SEED_STRIDE = 1_000_003
_NICENESS = 12  # the training loop comes first
_RESIZE_SHARE = 0.25


class Delivery(NamedTuple):
    """A chunk, and the slot of the shared memory that its pixels are in until it is released."""

    slot: int
    chunk: Chunk


class Feed:
    """Drawing processes and the memory they fill. They are forked: make this before CUDA is touched."""

    def __init__(self, tokenizer: Tokenizer, workers: int, video_share: float, seed: int) -> None:
        context = mp.get_context("fork")
        self.memory = mmap.mmap(-1, SLOT_BYTES * _SLOTS)
        self.level: Synchronized[float] = context.Value("d", 0.0)
        self._encoder = TailEncoder(tokenizer)
        self._video_share = video_share
        self._free: mp.SimpleQueue[int] = context.SimpleQueue()
        self._ready: mp.SimpleQueue[Delivery] = context.SimpleQueue()
        for slot in range(_SLOTS):
            self._free.put(slot)
        self._processes = [
            context.Process(target=self._draw_forever, args=(seed + _SEED_STRIDE * (index + 1),), daemon=True)
            for index in range(workers)
        ]
        for process in self._processes:
            process.start()

    def receive(self) -> Delivery | None:
        """The next chunk if one is ready.

        Raises:
            RuntimeError: a drawing process has died.
        """
        if not self._ready.empty():
            return self._ready.get()
        dead = [process for process in self._processes if not process.is_alive()]
        if dead:
            raise RuntimeError(f"{len(dead)} of {len(self._processes)} drawing processes died: see above")
        return None

    def release(self, slot: int) -> None:
        """Lets the slot be drawn into again."""
        self._free.put(slot)

    def stop(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def _draw_forever(self, seed: int) -> None:
        os.nice(_NICENESS)
        rng = random.Random(seed)
        while True:
            slot = self._free.get()
            grid = pick_grid(rng, self._video_share)
            count = max(1, min(_MOST_SAMPLES, SLOT_BYTES // grid.bytes))
            pixels: Bytes = np.frombuffer(self.memory, np.uint8, count * grid.bytes, slot * SLOT_BYTES)
            # Gradients are added by `augment`, on the GPU.
            variety = Variety(self.level.value, gradient_share=0.0, resize_share=_RESIZE_SHARE)
            draw = draw_of_kind(variety)
            chunk = draw_chunk(rng, self._encoder, grid, pixels.reshape(count, *grid.shape), draw)
            self._ready.put(Delivery(slot, chunk))
