"""Gemma 3, Gemma 4, PaliGemma and PaliGemma 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import HEAD_DIM, HEADS, HIDDEN, PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save_config

_SIGLIP = {"vision_use_head": False, **vision_dimensions()}


def build_3(folder: Path) -> None:
    """Write a Gemma 3: a picture, and each crop of a long one, is 4 tokens of 56 x 56 pixels."""
    special = [
        "<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>",
        "<start_of_image>", "<end_of_image>", "<image_soft_token>",
        "\n", "\n\n", "\n\n\n", "\n\n\n\n",
    ]  # fmt: skip
    vocabulary = write_tokenizer(
        folder, special, eos="<eos>", pad="<pad>", bos_token="<bos>",
        boi_token="<start_of_image>", eoi_token="<end_of_image>", image_token="<image_soft_token>",
    )  # fmt: skip
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<eos>"], ids["<pad>"])
    config = transformers.Gemma3Config(
        text_config={**text, "bos_token_id": ids["<bos>"], "head_dim": HEAD_DIM, "sliding_window": 512},
        vision_config={"image_size": 56, "patch_size": 14, **_SIGLIP},
        mm_tokens_per_image=4,
        boi_token_index=ids["<start_of_image>"],
        eoi_token_index=ids["<end_of_image>"],
        image_token_index=ids["<image_soft_token>"],
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Gemma3ImageProcessor",
        processor_class="Gemma3Processor",
        size={"height": 56, "width": 56},
        image_seq_length=4,
        pan_and_scan_min_crop_size=56,
        pan_and_scan_max_num_crops=4,
        pan_and_scan_min_ratio_to_activate=1.2,
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="Gemma3Processor", image_seq_length=4)
    save_config(folder, config, "Gemma3ForConditionalGeneration", ids["<eos>"], ids["<pad>"])


def build_4(folder: Path) -> None:
    """Write a Gemma 4: a token is 3 x 3 patches of 16 pixels."""
    special = [
        "<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>", "<|image>", "<image|>", "<|image|>", "<|video|>",
        "<|audio>", "<audio|>", "<|audio|>",
    ]  # fmt: skip
    vocabulary = write_tokenizer(
        folder, special, eos="<eos>", pad="<pad>", bos_token="<bos>",
        image_token="<|image|>", boi_token="<|image>", eoi_token="<image|>", video_token="<|video|>",
        audio_token="<|audio|>", boa_token="<|audio>", eoa_token="<audio|>",
    )  # fmt: skip
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<eos>"], ids["<pad>"])
    config = transformers.Gemma4Config(
        text_config={
            **text,
            "bos_token_id": ids["<bos>"],
            "head_dim": HEAD_DIM,
            "global_head_dim": HEAD_DIM,
            "layer_types": ["sliding_attention", "full_attention"],
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": vocabulary.size,
        },
        vision_config={
            "patch_size": 16,
            "num_key_value_heads": HEADS,
            "head_dim": HEAD_DIM,
            "position_embedding_size": 64,
            "pooling_kernel_size": 3,
            "default_output_length": 70,
            **vision_dimensions(),
        },
        boi_token_id=ids["<|image>"],
        eoi_token_id=ids["<image|>"],
        image_token_id=ids["<|image|>"],
        video_token_id=ids["<|video|>"],
        boa_token_id=ids["<|audio>"],
        eoa_token_index=ids["<audio|>"],
        audio_token_id=ids["<|audio|>"],
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Gemma4ImageProcessor",
        processor_class="Gemma4Processor",
        patch_size=16,
        max_soft_tokens=70,
        pooling_kernel_size=3,
        **PIXELS,
    )
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="Gemma4VideoProcessor",
        processor_class="Gemma4Processor",
        patch_size=16,
        max_soft_tokens=70,
        pooling_kernel_size=3,
        num_frames=8,
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="Gemma4Processor", image_seq_length=70)
    save_config(folder, config, "Gemma4ForConditionalGeneration", ids["<eos>"], ids["<pad>"])


def build_paligemma(folder: Path) -> None:
    """Write a PaliGemma: any picture is 4 x 4 tokens."""
    _build_paligemma(folder, transformers.GemmaConfig, {})


def build_paligemma2(folder: Path) -> None:
    """Write a PaliGemma 2."""
    _build_paligemma(folder, transformers.Gemma2Config, {"query_pre_attn_scalar": HEAD_DIM})


def _build_paligemma(folder: Path, text_class: Any, fields: dict[str, Any]) -> None:
    special = ["<pad>", "<eos>", "<bos>", "<image>", "\n"]
    vocabulary = write_tokenizer(folder, special, eos="<eos>", pad="<pad>", bos_token="<bos>")
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<eos>"], ids["<pad>"]) | {"bos_token_id": ids["<bos>"]}
    config = transformers.PaliGemmaConfig(
        text_config=text_class(head_dim=HEAD_DIM, **text, **fields),
        vision_config={"image_size": 56, "patch_size": 14, "projection_dim": HIDDEN, **_SIGLIP},
        image_token_index=ids["<image>"],
        projection_dim=HIDDEN,
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="SiglipImageProcessor",
        processor_class="PaliGemmaProcessor",
        size={"height": 56, "width": 56},
        image_seq_length=16,
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="PaliGemmaProcessor")
    save_config(folder, config, "PaliGemmaForConditionalGeneration", ids["<eos>"], ids["<pad>"])
