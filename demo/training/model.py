"""The model as it is trained: a Qwen2.5-VL of 4 million parameters, batched for samples of one size.

Every vision block looks at the whole frame: the architecture's window of 112 pixels is not used.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demo.drawing.kinds import LABELS
from demo.training.grids import PATCH, Grid
from demo.training.layers import RMSNorm, Rotation, TextAttention, TextBlock, VisionBlock
from demo.training.positions import Clock, sequence_positions, text_rotation, vision_rotation
from demo.training.prompt import LONGEST_TAIL

ORDERS = 32  # places in an answer that a training-only head tells apart: `demo.drawing.text` knows it too
TRAINING_ONLY = "aux_"  # how the names of parameters begin that are not exported


@dataclass(frozen=True)
class Sizes:
    """The numbers of the architecture."""

    vocabulary: int = 448
    text_width: int = 256
    text_layers: int = 4
    text_heads: int = 4
    text_shared_heads: int = 2
    head_size: int = 64
    text_inner: int = 448
    rotary_base: float = 16.0
    rotary_sections: tuple[int, int, int] = (4, 14, 14)
    vision_width: int = 128
    vision_layers: int = 4
    vision_heads: int = 4
    vision_inner: int = 512


class PatchEmbedding(nn.Module):
    """A linear map of the pixels of a patch in two frames."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Module()
        values = 3 * 2 * PATCH * PATCH
        self.proj.weight = nn.Parameter(torch.randn(width, 3, 2, PATCH, PATCH) * values**-0.5)

    def forward(self, patches: Tensor) -> Tensor:
        """[..., values of a patch] to [..., width]; a picture brings one frame, which stands for both."""
        weight = self.proj.weight
        if patches.shape[-1] == 3 * PATCH * PATCH:
            weight = weight.sum(2)
        return F.linear(patches, weight.flatten(1).to(patches.dtype))


class PatchMerger(nn.Module):
    """Makes a visual token of four patches."""

    def __init__(self, width: int, text_width: int) -> None:
        super().__init__()
        self.ln_q = RMSNorm(width)
        self.mlp = nn.Sequential(nn.Linear(4 * width, 4 * width), nn.GELU(), nn.Linear(4 * width, text_width))

    def forward(self, patches: Tensor) -> Tensor:
        """[batch, patches, width] to [batch, patches / 4, text width]."""
        batch, count, _ = patches.shape
        merged: Tensor = self.mlp(self.ln_q(patches).reshape(batch, count // 4, -1))
        return merged


class VisionTower(nn.Module):
    """Patches to visual tokens."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.vision_width
        self.patch_embed = PatchEmbedding(width)
        self.blocks = nn.ModuleList(
            VisionBlock(width, sizes.vision_heads, sizes.vision_inner) for _ in range(sizes.vision_layers)
        )
        self.merger = PatchMerger(width, sizes.text_width)

    def forward(self, patches: Tensor, rotation: Rotation) -> Tensor:
        """[frame pairs, patches, values] to [frame pairs, tokens, text width]."""
        hidden = self.patch_embed(patches)
        rotation = rotation.to(hidden.dtype)
        for block in self.blocks:
            hidden = block(hidden, rotation)
        tokens: Tensor = self.merger(hidden)
        return tokens


class TextTower(nn.Module):
    """Token embeddings, decoder layers and the last norm."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.text_width
        self.embed_tokens = nn.Embedding(sizes.vocabulary, width)
        self.layers = nn.ModuleList(
            TextBlock(
                width,
                sizes.text_inner,
                TextAttention(width, sizes.text_heads, sizes.text_shared_heads, sizes.head_size),
            )
            for _ in range(sizes.text_layers)
        )
        self.norm = RMSNorm(width)

    def forward(self, embedded: Tensor, rotation: Rotation, keep: int) -> Tensor:
        """[batch, tokens, width] to the hidden states of the last `keep` tokens."""
        rotation = rotation.to(embedded.dtype)
        for layer in self.layers:
            embedded = layer(embedded, rotation)
        hidden: Tensor = self.norm(embedded[:, -keep:])
        return hidden


class ShapesVL(nn.Module):
    """The whole model, and two heads that only training has: what each patch shows, and its place in the
    answer."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        super().__init__()
        self.sizes = sizes or Sizes()
        self.visual = VisionTower(self.sizes)
        self.model = TextTower(self.sizes)
        self.lm_head = nn.Linear(self.sizes.text_width, self.sizes.vocabulary, bias=False)
        self.aux_label = nn.Linear(self.sizes.text_width, 4 * LABELS)
        self.aux_order = nn.Linear(self.sizes.text_width, 4 * ORDERS)
        self._vision_rotations: dict[Grid, Rotation] = {}
        self._text_rotations: dict[tuple[int, Grid, Clock], Rotation] = {}
        self._initialise()

    def forward(
        self, patches: Tensor, grid: Grid, prompt: Tensor, tail: Tensor, clock: Clock
    ) -> tuple[Tensor, Tensor]:
        """Runs samples of one grid.

        Args:
            patches: [batch * steps, patches of a step, values], from `cut_patches`.
            grid: the size of every sample.
            prompt: [tokens] before the image, the same in every sample.
            tail: [batch, tokens] after the image: question, answer, padding.
            clock: how time becomes positions; of no effect on pictures.

        Returns:
            Hidden states of the tail [batch, tokens, width], for `lm_head`; and the visual tokens
            [batch, tokens, width], for the training-only heads.
        """
        batch, tail_length = tail.shape
        visual = self.visual(patches, self._vision_rotation(grid, patches.device))
        visual = visual.reshape(batch, -1, visual.shape[-1])
        before = self.model.embed_tokens(prompt).to(visual.dtype).expand(batch, -1, -1)
        after = self.model.embed_tokens(tail).to(visual.dtype)
        embedded = torch.cat((before, visual, after), 1)
        rotation = self._text_rotation(len(prompt), grid, clock, visual.device)
        length = embedded.shape[1]
        rotation = Rotation(rotation.cosine[:length], rotation.sine[:length])
        return self.model(embedded, rotation, tail_length), visual

    def _vision_rotation(self, grid: Grid, device: torch.device) -> Rotation:
        if grid not in self._vision_rotations:
            rotation = vision_rotation(self.sizes.vision_width // self.sizes.vision_heads, grid)
            self._vision_rotations[grid] = Rotation(rotation.cosine.to(device), rotation.sine.to(device))
        return self._vision_rotations[grid]

    def _text_rotation(self, prompt: int, grid: Grid, clock: Clock, device: torch.device) -> Rotation:
        key = (prompt, grid, clock)
        if key not in self._text_rotations:
            positions = sequence_positions(prompt, grid, LONGEST_TAIL, clock)
            sizes = self.sizes
            rotation = text_rotation(positions, sizes.head_size, sizes.rotary_base, sizes.rotary_sections)
            self._text_rotations[key] = Rotation(rotation.cosine.to(device), rotation.sine.to(device))
        return self._text_rotations[key]

    def _initialise(self) -> None:
        """Normal weights: small in embeddings, else by fan-in, and about half of that before a shortcut."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=_deviation(name, parameter.shape[1]))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)


def _deviation(name: str, fan_in: int) -> float:
    if "embed" in name or "lm_head" in name:
        return 0.02
    joins_shortcut = any(part in name for part in ("down_proj", "o_proj", "attn.proj"))
    deviation: float = fan_in**-0.5
    return deviation * (0.5 if joins_shortcut else 0.9)


def cut_patches(pixels: Tensor, grid: Grid) -> Tensor:
    """Normalised [batch, frames, height, width, 3] to [batch * steps, patches of a step, values].

    Patches are in Qwen's order, four of a token together; values go by channel, frame, row, column.
    """
    batch, frames = pixels.shape[:2]
    together = 1 if frames == 1 else 2
    split = pixels.reshape(batch, frames // together, together, grid.rows, 2, PATCH, grid.columns, 2, PATCH, 3)
    ordered = split.permute(0, 1, 3, 6, 4, 7, 9, 2, 5, 8)
    return ordered.reshape(batch * grid.steps, grid.rows * grid.columns * 4, 3 * together * PATCH * PATCH)
