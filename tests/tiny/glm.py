"""GLM-4.1V, GLM-4.5V and GLM-OCR: a token is 2 x 2 patches of 14 pixels, of one image or two frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, PIXELS, text_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save_config

_SPECIAL = [
    "<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
    "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
    "<|image|>", "<|video|>",
]  # fmt: skip
_ROPE = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "mrope_section": [4, 2, 2],
    "partial_rotary_factor": 0.5,
}
_VISION = {
    "depth": 2,
    "hidden_size": HIDDEN,
    "num_heads": HEADS,
    "image_size": 56,
    "patch_size": 14,
    "out_hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
}


def build_4_1(folder: Path) -> None:
    """Write a GLM-4.1V."""
    _build(folder, transformers.Glm4vConfig, "Glm4vForConditionalGeneration", {})


def build_4_5(folder: Path) -> None:
    """Write a GLM-4.5V, of one dense layer and one of four experts."""
    experts = {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": HIDDEN,
        "first_k_dense_replace": 1,
        "head_dim": HEAD_DIM,
        "use_qk_norm": False,
    }
    _build(folder, transformers.Glm4vMoeConfig, "Glm4vMoeForConditionalGeneration", experts)


def build_ocr(folder: Path) -> None:
    """Write a GLM-OCR."""
    _build(folder, transformers.GlmOcrConfig, "GlmOcrForConditionalGeneration", {"head_dim": HEAD_DIM})


def _build(folder: Path, config_class: Any, architecture: str, text: dict[str, Any]) -> None:
    vocabulary = write_tokenizer(folder, _SPECIAL, eos="<|user|>", pad="<|endoftext|>")
    ids = vocabulary.ids
    eos, pad = ids["<|user|>"], ids["<|endoftext|>"]
    config = config_class(
        text_config={**text_dimensions(vocabulary.size, eos, pad), "rope_parameters": _ROPE, **text},
        vision_config=_VISION,
        image_token_id=ids["<|image|>"],
        video_token_id=ids["<|video|>"],
        image_start_token_id=ids["<|begin_of_image|>"],
        image_end_token_id=ids["<|end_of_image|>"],
        video_start_token_id=ids["<|begin_of_video|>"],
        video_end_token_id=ids["<|end_of_video|>"],
    )
    pixels = {**PIXELS, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
    size = {"shortest_edge": 56 * 56, "longest_edge": 64 * 28 * 28}
    processor = "Glm4vProcessor"
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Glm4vImageProcessor",
        processor_class=processor,
        size=size,
        **pixels,
    )
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="Glm4vVideoProcessor",
        processor_class=processor,
        size=size,
        fps=2,
        **pixels,
    )
    write_json(folder, "processor_config.json", processor_class=processor)
    save_config(folder, config, architecture, eos, pad)
