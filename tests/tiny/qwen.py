"""Tiny Qwen2.5-VL and Qwen3-VL: a token is 2 x 2 patches of 14 or 16 pixels, of one image or two frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, PIXELS, text_dimensions, write_json
from tests.tiny.tokenizer import CHATML, write_tokenizer
from tests.tiny.weights import save

_SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>",
    "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
_VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "out_hidden_size": HIDDEN,
    "num_heads": HEADS,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
_ROPE: dict[str, Any] = {
    "rope_type": "default",
    "rope_theta": 1e6,
    "mrope_section": [4, 6, 6],  # together half of the head dimension
}


def build_2_5(folder: Path) -> None:
    """Write a Qwen2.5-VL: 28 x 28 pixels a token."""
    text, tokens = _tokenizer(folder)
    config = transformers.Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": _ROPE},
        vision_config={
            **_VISION,
            "patch_size": 14,
            "window_size": 112,
            "fullatt_block_indexes": [1],
            "tokens_per_second": 2,
        },
        **tokens,
    )
    _processors(folder, 14, "Qwen2_5_VLProcessor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor")
    save(folder, transformers.Qwen2_5_VLForConditionalGeneration, config)


def build_3(folder: Path) -> None:
    """Write a Qwen3-VL: 32 x 32 pixels a token."""
    text, tokens = _tokenizer(folder)
    config = transformers.Qwen3VLConfig(
        text_config={**text, "head_dim": HEAD_DIM, "rope_parameters": {**_ROPE, "mrope_interleaved": True}},
        vision_config={
            **_VISION,
            "patch_size": 16,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        },
        **tokens,
    )
    _processors(folder, 16, "Qwen3VLProcessor", "Qwen2VLImageProcessorFast", "Qwen3VLVideoProcessor")
    save(folder, transformers.Qwen3VLForConditionalGeneration, config)


def _tokenizer(folder: Path) -> tuple[dict[str, Any], dict[str, int]]:
    vocabulary = write_tokenizer(folder, _SPECIAL, eos="<|im_end|>", pad="<|endoftext|>", chat_template=CHATML)
    ids = vocabulary.ids
    tokens = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    return text_dimensions(vocabulary.size, ids["<|im_end|>"], ids["<|endoftext|>"]), tokens


def _processors(folder: Path, patch: int, processor: str, image: str, video: str) -> None:
    # 4 to 64 tokens an image (a spec's min_pixels and max_pixels go first), 4 to 256 a video.
    token = (2 * patch) ** 2
    pixels: dict[str, Any] = {**PIXELS, "patch_size": patch, "temporal_patch_size": 2, "merge_size": 2}
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type=image,
        processor_class=processor,
        size={"shortest_edge": 4 * token, "longest_edge": 64 * token},
        **pixels,
    )
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type=video,
        processor_class=processor,
        size={"shortest_edge": 4 * token, "longest_edge": 256 * token},
        fps=2,
        min_frames=4,
        max_frames=16,
        do_sample_frames=video == "Qwen3VLVideoProcessor",
        **pixels,
    )
    write_json(folder, "processor_config.json", processor_class=processor)
