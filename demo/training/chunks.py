"""Some samples of one grid, as arrays."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from demo.training.grids import Grid
from demo.training.prompt import LONGEST_TAIL, end_prompt
from demo.training.samples import Bytes, Sample, Variety, draw_sample
from demo.training.tokenizer import END_OF_TURN, PADDING, find_id

Ids = NDArray[np.int16]


@dataclass(frozen=True)
class Chunk:
    """What belongs to the pixels of some samples; the pixels themselves travel in shared memory."""

    grid: Grid
    labels: Bytes
    """[samples, patches]"""
    orders: Bytes
    """[samples, patches]"""
    tokens: Ids
    """[samples, LONGEST_TAIL]: end of the prompt, answer, end of turn, padding."""
    starts: Ids
    """[samples]: where the answer begins."""
    lengths: Ids
    """[samples]: where the padding begins."""

    def __len__(self) -> int:
        return len(self.tokens)


class TailEncoder:
    """Encodes what follows the image: the end of the prompt and the answer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._end_of_turn = find_id(tokenizer, END_OF_TURN)
        self._questions: dict[str, list[int]] = {}
        self.padding = find_id(tokenizer, PADDING)

    def encode(self, question: str, answer: str) -> tuple[list[int], int]:
        """The tokens, and where the answer begins among them.

        Raises:
            ValueError: they are more than the model is trained with.
        """
        if question not in self._questions:
            self._questions[question] = self._tokenizer.encode(end_prompt(question)).ids
        prompt = self._questions[question]
        tokens = [*prompt, *self._tokenizer.encode(answer).ids, self._end_of_turn]
        if len(tokens) > LONGEST_TAIL:
            raise ValueError(f"{len(tokens)} tokens, {LONGEST_TAIL} is the most: {question!r} {answer!r}")
        return tokens, len(prompt)


def draw_chunk(
    rng: random.Random,
    encoder: TailEncoder,
    grid: Grid,
    pixels: Bytes,
    draw: Callable[[random.Random, Grid], Sample],
) -> Chunk:
    """Fills `pixels` ([samples, *grid.shape]) with what `draw` returns."""
    count = len(pixels)
    chunk = Chunk(
        grid,
        labels=np.zeros((count, grid.patches), np.uint8),
        orders=np.zeros((count, grid.patches), np.uint8),
        tokens=np.full((count, LONGEST_TAIL), encoder.padding, np.int16),
        starts=np.zeros(count, np.int16),
        lengths=np.zeros(count, np.int16),
    )
    for index in range(count):
        sample = draw(rng, grid)
        pixels[index] = sample.pixels
        chunk.labels[index], chunk.orders[index] = sample.labels, sample.orders
        tokens, chunk.starts[index] = encoder.encode(sample.question, sample.answer)
        chunk.lengths[index] = len(tokens)
        chunk.tokens[index, : len(tokens)] = tokens
    return chunk


def draw_of_kind(variety: Variety, kind: str | None = None) -> Callable[[random.Random, Grid], Sample]:
    """`draw_sample` with these choices made."""
    return lambda rng, grid: draw_sample(rng, grid, variety, kind)
