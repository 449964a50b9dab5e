"""A tiny InternVL3 and its relatives, by vLLM's own model classes: tiles of 56 x 56, of 2 x 2 tokens.

transformers has no such architecture: on the hub its configuration class comes with each repository, as
remote code. Nothing of that is used here: the folder brings a configuration class of our own (`_CODE`), so
loading it takes `trust_remote_code` just as the real one does; processor and model are vLLM's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from tests.tiny.layout import HIDDEN, INTERMEDIATE, LAYERS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import CHATML, write_tokenizer
from tests.tiny.weights import save_generation, save_tensors

_TILE = 56
_PATCH = 14
_CODE = '''"""The configuration of InternVL's architecture, as far as vLLM reads it."""

from transformers import PretrainedConfig, Qwen2Config


class TinyInternVLConfig(PretrainedConfig):
    model_type = "internvl_chat"
    has_no_defaults_at_init = True

    def __init__(self, vision_config=None, llm_config=None, **fields):
        self.vision_config = PretrainedConfig(**(vision_config or {}))
        self.text_config = Qwen2Config(**(llm_config or {}))
        super().__init__(**fields)

    def get_text_config(self, *_, **__):
        return self.text_config
'''


_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<|video_pad|>"]


def build(folder: Path) -> None:
    """Write an InternVL3, with weights."""
    text, eos, pad = _write(folder, "InternVLChatModel", _SPECIAL)
    torch.manual_seed(0)
    language = {f"language_model.{name}": t for name, t in Qwen2ForCausalLM(text).state_dict().items()}
    save_tensors(folder, {**_vision_tensors(), **_projector_tensors(), **language})
    save_generation(folder, eos, pad)


def build_nvlm(folder: Path) -> None:
    """Write an NVLM-D: each tile is introduced by its number, in text."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<Image>", "</Image>", "<|vision_pad|>"]
    _, eos, pad = _write(folder, "NVLM_D", special)
    save_generation(folder, eos, pad)


def build_h2ovl(folder: Path) -> None:
    """Write an H2OVL-Mississippi."""
    _, eos, pad = _write(folder, "H2OVLChatModel", _SPECIAL, use_msac=False)
    save_generation(folder, eos, pad)


def build_skywork(folder: Path) -> None:
    """Write a Skywork-R1V."""
    _, eos, pad = _write(folder, "SkyworkR1VChatModel", [*_SPECIAL, "<｜end▁of▁sentence｜>"])
    save_generation(folder, eos, pad)


def build_eagle(folder: Path) -> None:
    """Write an Eagle 2.5, which sees through SigLIP."""
    _, eos, pad = _write(folder, "Eagle2_5_VLForConditionalGeneration", _SPECIAL)
    save_generation(folder, eos, pad)


def _write(folder: Path, architecture: str, special: list[str], **fields: Any) -> tuple[Qwen2Config, int, int]:
    vocabulary = write_tokenizer(folder, special, eos="<|im_end|>", pad="<|endoftext|>", chat_template=CHATML)
    eos, pad = vocabulary.ids["<|im_end|>"], vocabulary.ids["<|endoftext|>"]
    text = Qwen2Config(**text_dimensions(vocabulary.size, eos, pad), architectures=["Qwen2ForCausalLM"])
    (folder / "configuration_tiny_internvl.py").write_text(_CODE, "utf-8")
    write_json(
        folder,
        "config.json",
        architectures=[architecture],
        model_type="internvl_chat",
        auto_map={"AutoConfig": "configuration_tiny_internvl.TinyInternVLConfig"},
        vision_config={
            **vision_dimensions(),
            "image_size": _TILE,
            "patch_size": _PATCH,
            "num_channels": 3,
            "attention_dropout": 0.0,
            "hidden_act": "gelu",
            "norm_type": "layer_norm",
            "layer_norm_eps": 1e-6,
            "qkv_bias": True,
            "qk_normalization": False,
            "initializer_factor": 0.1,
        },
        llm_config=text.to_dict(),
        downsample_ratio=0.5,
        dynamic_image_size=True,
        force_image_size=_TILE,
        min_dynamic_patch=1,
        max_dynamic_patch=12,
        ps_version="v2",
        select_layer=-1,
        use_thumbnail=True,
        torch_dtype="float32",
        **fields,
    )
    return text, eos, pad


def _vision_tensors() -> dict[str, torch.Tensor]:
    patches = (_TILE // _PATCH) ** 2
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.class_embedding": (1, 1, HIDDEN),
        "embeddings.patch_embedding.weight": (HIDDEN, 3, _PATCH, _PATCH),
        "embeddings.patch_embedding.bias": (HIDDEN,),
        "embeddings.position_embedding": (1, 1 + patches, HIDDEN),
    }
    for layer in range(LAYERS):
        shapes |= {
            f"encoder.layers.{layer}.{name}": shape
            for name, shape in {
                "attn.qkv.weight": (3 * HIDDEN, HIDDEN),
                "attn.qkv.bias": (3 * HIDDEN,),
                "attn.proj.weight": (HIDDEN, HIDDEN),
                "attn.proj.bias": (HIDDEN,),
                "mlp.fc1.weight": (INTERMEDIATE, HIDDEN),
                "mlp.fc1.bias": (INTERMEDIATE,),
                "mlp.fc2.weight": (HIDDEN, INTERMEDIATE),
                "mlp.fc2.bias": (HIDDEN,),
                "norm1.weight": (HIDDEN,),
                "norm1.bias": (HIDDEN,),
                "norm2.weight": (HIDDEN,),
                "norm2.bias": (HIDDEN,),
                "ls1": (HIDDEN,),
                "ls2": (HIDDEN,),
            }.items()
        }
    return {f"vision_model.{name}": _random(shape) for name, shape in shapes.items()}


def _projector_tensors() -> dict[str, torch.Tensor]:
    merged = 4 * HIDDEN  # the pixel shuffle makes one token of 2 x 2
    shapes = {
        "0.weight": (merged,),
        "0.bias": (merged,),
        "1.weight": (HIDDEN, merged),
        "1.bias": (HIDDEN,),
        "3.weight": (HIDDEN, HIDDEN),
        "3.bias": (HIDDEN,),
    }
    return {f"mlp1.{name}": _random(shape) for name, shape in shapes.items()}


def _random(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape) * 0.1
