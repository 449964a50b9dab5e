"""Random weights, the same in every build, under the names that published checkpoints use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.tiny.layout import write_json

_FILE = "model.safetensors"


def save(folder: Path, model_class: Any, config: Any) -> None:
    """Write a transformers model with random weights, its configuration and its generation defaults."""
    torch.manual_seed(0)
    model_class(config).to(torch.float32).save_pretrained(folder)
    path = folder / _FILE
    save_tensors(folder, {_published(name): tensor for name, tensor in load_file(path).items()})
    text = config.get_text_config()
    save_generation(folder, text.eos_token_id, text.pad_token_id)


def save_config(folder: Path, config: Any, architecture: str, eos: int, pad: int) -> None:
    """Write a model without weights: vLLM makes them up (`load_format="dummy"`)."""
    config.architectures = [architecture]
    config.save_pretrained(folder)
    save_generation(folder, eos, pad)


def save_tensors(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write the weights file."""
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / _FILE, metadata={"format": "pt"})


def save_generation(folder: Path, eos: int, pad: int) -> None:
    """Write `generation_config.json`: greedy, ended by `eos`."""
    write_json(folder, "generation_config.json", eos_token_id=eos, pad_token_id=pad, do_sample=False)


def _published(name: str) -> str:
    # transformers 5.19 saves `vision_tower.embeddings…`; checkpoints of the hub, and with them vLLM's loader,
    # have `vision_tower.vision_model.embeddings…`.
    if name.startswith("vision_tower.") and ".vision_model." not in name:
        return name.replace("vision_tower.", "vision_tower.vision_model.", 1)
    return name
