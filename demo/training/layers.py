"""The layers of Qwen2.5-VL, batched for samples of one size; parameters are named as in hub models."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class Rotation:
    """Cosines and sines of a rotary embedding, each [tokens, 1, head size]."""

    cosine: Tensor
    sine: Tensor

    def to(self, dtype: torch.dtype) -> "Rotation":
        """The same in another precision."""
        return Rotation(self.cosine.to(dtype), self.sine.to(dtype))

    def over_pairs(self) -> "Rotation":
        """[tokens, 1, 1, head size]: for queries and keys that are one tensor."""
        return Rotation(self.cosine[:, None], self.sine[:, None])

    def apply(self, heads: Tensor) -> Tensor:
        """Rotates [batch, tokens, heads, head size]."""
        first, second = heads.chunk(2, -1)
        return heads * self.cosine + torch.cat((-second, first), -1) * self.sine


class RMSNorm(nn.Module):
    """Divides by the root mean square, then scales."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden: Tensor) -> Tensor:
        """Any shape that ends in `width`."""
        return F.rms_norm(hidden, (hidden.shape[-1],), self.weight.to(hidden.dtype), _NORM_EPSILON)


class GatedMLP(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, inner: int, *, bias: bool) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., width] to the same."""
        projected: Tensor = self.down_proj(F.silu(self.gate_proj(hidden)) * self.up_proj(hidden))
        return projected


class VisionAttention(nn.Module):
    """Every patch of a frame pair sees every other."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.heads = heads

    def forward(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        """[batch, patches, width] to the same."""
        batch, patches, width = hidden.shape
        qkv = self.qkv(hidden).view(batch, patches, 3, self.heads, -1)
        rotated = rotation.over_pairs().apply(qkv[:, :, :2])
        query, key = rotated[:, :, 0].transpose(1, 2), rotated[:, :, 1].transpose(1, 2)
        seen = F.scaled_dot_product_attention(query, key, qkv[:, :, 2].transpose(1, 2))
        projected: Tensor = self.proj(seen.transpose(1, 2).reshape(batch, patches, width))
        return projected


class VisionBlock(nn.Module):
    """Attention and MLP, each after a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.norm1 = RMSNorm(width)
        self.norm2 = RMSNorm(width)
        self.attn = VisionAttention(width, heads)
        self.mlp = GatedMLP(width, inner, bias=True)

    def forward(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        """[batch, patches, width] to the same."""
        hidden = hidden + self.attn(self.norm1(hidden), rotation)
        mixed: Tensor = hidden + self.mlp(self.norm2(hidden))
        return mixed


class TextAttention(nn.Module):
    """Causal attention in which several query heads share a key and value head."""

    def __init__(self, width: int, heads: int, shared_heads: int, head_size: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(width, heads * head_size)
        self.k_proj = nn.Linear(width, shared_heads * head_size)
        self.v_proj = nn.Linear(width, shared_heads * head_size)
        self.o_proj = nn.Linear(heads * head_size, width, bias=False)
        self.head_size = head_size
        self.sharing = heads // shared_heads

    def forward(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        """[batch, tokens, width] to the same."""
        batch, tokens, _ = hidden.shape
        query = rotation.apply(self._split_heads(self.q_proj(hidden))).transpose(1, 2)
        key = rotation.apply(self._split_heads(self.k_proj(hidden))).transpose(1, 2)
        value = self._split_heads(self.v_proj(hidden)).transpose(1, 2)
        key, value = key.repeat_interleave(self.sharing, 1), value.repeat_interleave(self.sharing, 1)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.o_proj(seen.transpose(1, 2).reshape(batch, tokens, -1))
        return projected

    def _split_heads(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:2], -1, self.head_size)


class TextBlock(nn.Module):
    """Attention and MLP, each after a norm and beside a shortcut."""

    def __init__(self, width: int, inner: int, attention: TextAttention) -> None:
        super().__init__()
        self.self_attn = attention
        self.mlp = GatedMLP(width, inner, bias=False)
        self.input_layernorm = RMSNorm(width)
        self.post_attention_layernorm = RMSNorm(width)

    def forward(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        """[batch, tokens, width] to the same."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), rotation)
        mixed: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return mixed
