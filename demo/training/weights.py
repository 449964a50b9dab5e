"""The weights of a run: their running average, and files of them."""

import os
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from demo.training.model import TRAINING_ONLY, ShapesVL

_SLOWEST_DECAY = 0.999


class AveragedWeights:
    """An exponential average over steps, quick at first."""

    def __init__(self, model: ShapesVL) -> None:
        self._parameters = dict(model.named_parameters())
        self._average = {name: value.detach().clone() for name, value in self._parameters.items()}

    def update(self, step: int) -> None:
        """Takes in the weights after `step` steps."""
        decay = min(_SLOWEST_DECAY, step / (step + 20))
        current = [value.detach() for value in self._parameters.values()]
        torch._foreach_lerp_(list(self._average.values()), current, 1 - decay)

    def save(self, path: Path) -> None:
        """Writes the average."""
        _save(self._average, path)


def save_weights(model: ShapesVL, path: Path) -> None:
    """Writes the weights as they are now."""
    _save(dict(model.named_parameters()), path)


def _save(parameters: dict[str, Tensor], path: Path) -> None:
    """Float32, without what only training has; a reader never sees half a file."""
    exported = {
        name: value.detach().float().contiguous().cpu()
        for name, value in parameters.items()
        if not name.startswith(TRAINING_ONLY)
    }
    unfinished = path.with_suffix(".part")
    save_file(exported, unfinished)
    os.replace(unfinished, path)
