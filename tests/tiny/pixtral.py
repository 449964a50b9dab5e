"""Models that see through Pixtral's tower: Pixtral, Mistral Small 3.1 and LightOnOCR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import HEAD_DIM, PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import Vocabulary, write_tokenizer
from tests.tiny.weights import save_config

_SPECIAL = ["<s>", "</s>", "<pad>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"]
_TOKENS = {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]"}


def build(folder: Path) -> None:
    """Write a Pixtral: 16 x 16 pixels a token, each row ended by one."""
    vocabulary = _tokenizer(folder)
    config = transformers.LlavaConfig(
        vision_config=_vision(16),
        text_config=_text(vocabulary),
        image_token_index=vocabulary.ids["[IMG]"],
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
    )
    _processor(folder, 16, 1, _TOKENS)
    save_config(
        folder, config, "LlavaForConditionalGeneration", vocabulary.ids["</s>"], vocabulary.ids["<pad>"]
    )


def build_mistral3(folder: Path) -> None:
    """Write a Mistral Small 3.1: a token is 2 x 2 patches of 14 pixels, each row ended by one."""
    vocabulary = _tokenizer(folder)
    config = transformers.Mistral3Config(
        vision_config=_vision(14),
        text_config=_text(vocabulary),
        image_token_index=vocabulary.ids["[IMG]"],
        spatial_merge_size=2,
        vision_feature_layer=-1,
    )
    _processor(folder, 14, 2, _TOKENS)
    save_config(
        folder, config, "Mistral3ForConditionalGeneration", vocabulary.ids["</s>"], vocabulary.ids["<pad>"]
    )


def build_lighton(folder: Path) -> None:
    """Write a LightOnOCR: Qwen3 behind Pixtral's tower, 2 x 2 patches of 14 pixels a token."""
    special = [
        "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|vision_pad|>", "<|vision_end|>",
    ]  # fmt: skip
    vocabulary = write_tokenizer(folder, special, eos="<|im_end|>", pad="<|endoftext|>")
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<|im_end|>"], ids["<|endoftext|>"])
    config = transformers.Mistral3Config(
        vision_config=_vision(14),
        text_config=transformers.Qwen3Config(head_dim=HEAD_DIM, **text),
        image_token_index=ids["<|image_pad|>"],
        spatial_merge_size=2,
        vision_feature_layer=-1,
    )
    tokens = {
        "image_token": "<|image_pad|>",
        "image_break_token": "<|vision_pad|>",
        "image_end_token": "<|vision_end|>",
    }
    _processor(folder, 14, 2, tokens)
    save_config(folder, config, "LightOnOCRForConditionalGeneration", ids["<|im_end|>"], ids["<|endoftext|>"])


def _tokenizer(folder: Path) -> Vocabulary:
    return write_tokenizer(folder, _SPECIAL, eos="</s>", pad="<pad>", bos_token="<s>")


def _text(vocabulary: Vocabulary) -> Any:
    ids = vocabulary.ids
    return transformers.MistralConfig(
        head_dim=HEAD_DIM, **text_dimensions(vocabulary.size, ids["</s>"], ids["<pad>"]), sliding_window=None
    )


def _vision(patch: int) -> Any:
    return transformers.PixtralVisionConfig(
        image_size=16 * patch, patch_size=patch, head_dim=HEAD_DIM, **vision_dimensions()
    )


def _processor(folder: Path, patch: int, merge: int, tokens: dict[str, str]) -> None:
    processor = "PixtralProcessor"
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="PixtralImageProcessor",
        processor_class=processor,
        patch_size=patch,
        size={"longest_edge": 16 * patch},
        **PIXELS,
    )
    write_json(
        folder,
        "processor_config.json",
        processor_class=processor,
        patch_size=patch,
        spatial_merge_size=merge,
        **tokens,
    )
