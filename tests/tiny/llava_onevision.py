"""A tiny LLaVA-OneVision: tiles of 56 x 56 (4 x 4 tokens) in grids up to 2 x 2, frames of 2 x 2 tokens."""

from __future__ import annotations

from pathlib import Path

from transformers import (
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    Qwen2Config,
    SiglipVisionConfig,
)

from tests.tiny.layout import PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save

_PROCESSOR = "LlavaOnevisionProcessor"
_GRIDS = [[56, 56], [56, 112], [112, 56], [112, 112]]


def build(folder: Path) -> None:
    """Write the model."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"]
    vocabulary = write_tokenizer(folder, special, eos="<|im_end|>", pad="<|endoftext|>")
    ids = vocabulary.ids
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(
            image_size=56, patch_size=14, vision_use_head=False, **vision_dimensions()
        ),
        text_config=Qwen2Config(**text_dimensions(vocabulary.size, ids["<|im_end|>"], ids["<|endoftext|>"])),
        image_token_index=ids["<image>"],
        video_token_index=ids["<video>"],
        image_grid_pinpoints=_GRIDS,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9",
    )
    pixels = {**PIXELS, "size": {"height": 56, "width": 56}}
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="LlavaOnevisionImageProcessor",
        processor_class=_PROCESSOR,
        image_grid_pinpoints=_GRIDS,
        do_pad=True,
        **pixels,
    )
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="LlavaOnevisionVideoProcessor",
        processor_class=_PROCESSOR,
        **pixels,
    )
    write_json(
        folder,
        "processor_config.json",
        processor_class=_PROCESSOR,
        image_token="<image>",
        video_token="<video>",
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9",
    )
    save(folder, LlavaOnevisionForConditionalGeneration, config)
