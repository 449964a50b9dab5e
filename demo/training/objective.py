"""What training minimises."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from demo.drawing.kinds import LABELS
from demo.training.augment import augment, normalise
from demo.training.model import ORDERS, ShapesVL, cut_patches
from demo.training.pools import Batch
from demo.training.positions import Clock

_BACKGROUND_WEIGHT = 0.05  # nearly all patches are background
_IGNORED = -100


@dataclass(frozen=True)
class Losses:
    """Means over a batch; the last two are zero for videos."""

    answer: Tensor
    """Cross entropy of the answer's tokens."""
    label: Tensor
    """Cross entropy of what each patch shows."""
    order: Tensor
    """Cross entropy of its place in the answer."""


def look(model: ShapesVL, batch: Batch, prompt: Tensor, clock: Clock, *, vary: bool) -> tuple[Tensor, Tensor]:
    """Runs the model on a batch: hidden states of the tail, and visual tokens; `vary` augments the pixels."""
    pixels = batch.pixels.float().div_(255)
    if vary:
        pixels = augment(pixels)
    pixels = normalise(pixels)
    is_cuda = pixels.device.type == "cuda"
    if is_cuda:
        pixels = pixels.bfloat16()
    patches = cut_patches(pixels, batch.grid)
    with torch.autocast(pixels.device.type, torch.bfloat16, enabled=is_cuda):
        hidden, visual = model(patches, batch.grid, prompt, batch.tokens, clock)
    return hidden, visual


def measure_losses(model: ShapesVL, batch: Batch, prompt: Tensor, clock: Clock) -> Losses:
    """The losses of a batch of varied pixels."""
    hidden, visual = look(model, batch, prompt, clock, vary=True)
    device = hidden.device
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        answer = _answer_loss(model.lm_head(hidden[:, :-1]), batch)
        if batch.grid.frames > 1:
            nothing = torch.zeros((), device=device)
            return Losses(answer, nothing, nothing)
        labels, orders = batch.labels.long(), batch.orders.long()
        weight = torch.ones(LABELS, device=device)
        weight[0] = _BACKGROUND_WEIGHT
        shown = model.aux_label(visual).float().reshape(-1, LABELS)
        placed = model.aux_order(visual).float().reshape(-1, ORDERS)
        label = F.cross_entropy(shown, labels.flatten(), weight=weight)
        known_orders = torch.where(labels > 0, orders, _IGNORED)
        order = F.cross_entropy(placed, known_orders.flatten(), ignore_index=_IGNORED)
    return Losses(answer, label, order)


def _answer_loss(logits: Tensor, batch: Batch) -> Tensor:
    targets = torch.where(batch.predicts, batch.tokens[:, 1:], _IGNORED)
    total = F.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=_IGNORED, reduction="sum"
    )
    return total / batch.predicts.sum()
