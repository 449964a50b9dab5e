"""Samples that are never trained on, and how many of them the model answers right."""

import random
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from demo.training.chunks import TailEncoder, draw_chunk, draw_of_kind
from demo.training.grids import VIDEO_GRIDS, Grid
from demo.training.model import ShapesVL
from demo.training.objective import look
from demo.training.pools import Batch, Pool
from demo.training.positions import Clock
from demo.training.samples import Sample, Variety

_SEED = 987654321
_VIDEO_CLOCK = Clock(2, text_after_time=True)  # two frames a second, as vLLM counts
_SIDES = (
    (3, 3), (3, 6), (4, 4), (4, 8), (5, 5), (6, 4), (6, 9), (8, 8),
    (5, 11), (9, 7), (12, 8), (13, 13), (10, 3), (3, 12), (16, 9), (2, 8),
)  # fmt: skip


class HeldOut:
    """Pictures of many grids and videos of some."""

    def __init__(self, encoder: TailEncoder, device: torch.device, count: int) -> None:
        self._rng = random.Random(_SEED)
        self._encoder = encoder
        self._device = device
        self._count = count
        text, shapes = draw_of_kind(Variety(), "text"), draw_of_kind(Variety(), "shapes")
        grids = [Grid(1, rows, columns) for rows, columns in _SIDES]
        pictures = [(self._draw(grid, text), self._draw(grid, shapes)) for grid in grids]
        videos = [self._draw(grid, draw_of_kind(Variety())) for grid in VIDEO_GRIDS[::6]]
        self._batches = {
            "text": [pair[0] for pair in pictures],
            "shapes": [pair[1] for pair in pictures],
            "video": videos,
        }

    def measure(self, model: ShapesVL, prompt: Tensor) -> dict[str, float]:
        """The share of right answers of each kind.

        An answer is right when greedy decoding would give it: each token is the likeliest after those before.
        """
        model.eval()
        with torch.no_grad():
            shares = {
                kind: sum(_count_right(model, batch, prompt) for batch in batches)
                / sum(len(batch) for batch in batches)
                for kind, batches in self._batches.items()
            }
        model.train()
        return shares

    def _draw(self, grid: Grid, draw: Callable[[random.Random, Grid], Sample]) -> Batch:
        pixels = np.zeros((self._count, *grid.shape), np.uint8)
        chunk = draw_chunk(self._rng, self._encoder, grid, pixels, draw)
        pool = Pool(grid, self._count, self._device)
        pool.put(chunk, torch.from_numpy(pixels))
        return pool.take(np.arange(self._count))


def _count_right(model: ShapesVL, batch: Batch, prompt: Tensor) -> int:
    clock = _VIDEO_CLOCK if batch.grid.frames > 1 else Clock()
    hidden, _ = look(model, batch, prompt, clock, vary=False)
    likeliest = model.lm_head(hidden[:, :-1].float()).argmax(-1)
    right = (likeliest == batch.tokens[:, 1:]) | ~batch.predicts
    return int(right.all(1).sum())
