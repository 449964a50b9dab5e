"""Rotary positions: of patches in a frame, and of prompt, visual and answer tokens in a sequence."""

from dataclasses import dataclass

import torch
from torch import Tensor

from demo.training.grids import Grid
from demo.training.layers import Rotation

_VISION_BASE = 10000.0


@dataclass(frozen=True)
class Clock:
    """How time in a video becomes positions."""

    step: int = 1
    """Positions from one frame pair to the next: depends on the video's frames per second."""
    text_after_time: bool = False
    """Whether the text's positions go on after the last time, as vLLM counts, or after the longest side of
    the grid only, as transformers does. The model is trained with both."""


def merge_order(values: Tensor, grid: Grid) -> Tensor:
    """[2 * rows, 2 * columns] per patch to one axis in Qwen's order: the four patches of a token together."""
    squares = values.reshape(grid.rows, 2, grid.columns, 2)
    return squares.permute(0, 2, 1, 3).reshape(-1)


def vision_rotation(head_size: int, grid: Grid) -> Rotation:
    """For the patches of one frame pair: half of each head turns with the row, half with the column."""
    frequencies = 1 / (_VISION_BASE ** (torch.arange(0, head_size // 2, 2).float() / (head_size // 2)))
    high, wide = 2 * grid.rows, 2 * grid.columns
    row = merge_order(torch.arange(high)[:, None].expand(high, wide), grid).float()
    column = merge_order(torch.arange(wide)[None].expand(high, wide), grid).float()
    return _rotate(torch.cat((row[:, None] * frequencies, column[:, None] * frequencies), -1))


def text_rotation(positions: Tensor, head_size: int, base: float, sections: tuple[int, int, int]) -> Rotation:
    """For tokens at `positions` ([3, tokens]: time, row, column); `sections` says how many frequencies each
    of the three turns."""
    frequencies = 1 / (base ** (torch.arange(0, head_size, 2).float() / head_size))
    angles = (positions[..., None] * frequencies).split(sections, -1)
    return _rotate(torch.cat([part[axis] for axis, part in enumerate(angles)], -1))


def sequence_positions(prompt: int, grid: Grid, tail: int, clock: Clock) -> Tensor:
    """[3, tokens] of `prompt` tokens, the visual tokens of `grid`, and `tail` tokens."""
    shape = (grid.steps, grid.rows, grid.columns)
    time = (torch.arange(grid.steps) * clock.step)[:, None, None].expand(shape)
    row = torch.arange(grid.rows)[None, :, None].expand(shape)
    column = torch.arange(grid.columns)[None, None, :].expand(shape)
    visual = torch.stack([time, row, column]).reshape(3, -1) + prompt
    extent = max(grid.rows, grid.columns)
    if clock.text_after_time:
        extent = max(extent, (grid.steps - 1) * clock.step + 1)
    before = torch.arange(prompt).expand(3, -1)
    after = torch.arange(tail).expand(3, -1) + prompt + extent
    return torch.cat((before, visual, after), 1).float()


def _rotate(angles: Tensor) -> Rotation:
    doubled = torch.cat((angles, angles), -1)
    return Rotation(doubled.cos()[:, None], doubled.sin()[:, None])
