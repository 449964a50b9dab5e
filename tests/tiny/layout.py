"""The dimensions that all tiny models share, and how their folders are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HIDDEN = 64
HEADS = 2
HEAD_DIM = 32  # the smallest that vLLM's CPU attention takes
LAYERS = 2
INTERMEDIATE = 128
MAX_POSITIONS = 4096

PIXELS = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "do_convert_rgb": True,
    "resample": 3,
    "rescale_factor": 1 / 255,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
"""What every image processor's configuration says."""


def text_dimensions(vocabulary: int, eos: int, pad: int) -> dict[str, Any]:
    """Configuration fields of the language model; two key-value heads, so that two ranks can share them."""
    return {
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": MAX_POSITIONS,
        "bos_token_id": eos,
        "eos_token_id": eos,
        "pad_token_id": pad,
    }


def vision_dimensions(layers: int = LAYERS) -> dict[str, Any]:
    """Configuration fields of a CLIP-like vision tower."""
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
    }


def write_json(folder: Path, name: str, **fields: Any) -> None:
    """Write one of the folder's JSON files."""
    (folder / name).write_text(json.dumps(fields, indent=1), "utf-8")
