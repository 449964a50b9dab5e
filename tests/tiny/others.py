"""Families of one model each: Aria, BLIP-2, Command A Vision, Llama 4, LFM2-VL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import (
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    PIXELS,
    text_dimensions,
    vision_dimensions,
    write_json,
)
from tests.tiny.tokenizer import CHATML, Vocabulary, write_tokenizer
from tests.tiny.weights import save_config

CHAT_PARTS = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A chat template that takes typed parts; IMAGE is to be replaced by the model's token."""


def build_aria(folder: Path) -> None:
    """Write an Aria: any picture is 8 queries of 10 x 10 patches."""
    vocabulary = _tokenizer(
        folder, "<|endoftext|>", ["<fim_prefix>", "<fim_suffix>", "<|img|>"], image_token="<|img|>"
    )
    # vLLM refuses stop tokens beyond the vocabulary, and the spec has the real ones' numbers.
    text = {**_text(vocabulary, "<|endoftext|>"), "vocab_size": 93_696}
    config = transformers.AriaConfig(
        text_config=transformers.AriaTextConfig(
            **text, head_dim=HEAD_DIM, moe_num_experts=4, moe_topk=2, moe_num_shared_experts=1
        ),
        vision_config=transformers.Idefics3VisionConfig(image_size=980, patch_size=98, **vision_dimensions()),
        projector_patch_to_query_dict={"25": 4, "100": 8},
        image_token_index=vocabulary.ids["<|img|>"],
    )  # fmt: skip
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="AriaImageProcessor",
        processor_class="AriaProcessor",
        max_image_size=980,  # its processor knows this and 490 only
        min_image_size=98,
        split_image=False,
        **{**PIXELS, "do_resize": False},
    )
    write_json(
        folder, "processor_config.json", processor_class="AriaProcessor", size_conversion={"490": 4, "980": 8}
    )
    _save(folder, config, "AriaForConditionalGeneration", text)


def build_blip2(folder: Path) -> None:
    """Write a BLIP-2: any picture is 4 queries."""
    vocabulary = _tokenizer(folder, "</s>", ["<pad>", "<image>"])
    text = _text(vocabulary, "</s>")
    config = transformers.Blip2Config(
        vision_config={"image_size": 56, "patch_size": 14, **vision_dimensions()},
        qformer_config={
            "encoder_hidden_size": HIDDEN, "max_position_embeddings": 64, "vocab_size": 64,
            **vision_dimensions(),
        },
        text_config={
            "model_type": "opt",
            "vocab_size": text["vocab_size"],
            "hidden_size": HIDDEN,
            "word_embed_proj_dim": HIDDEN,
            "ffn_dim": INTERMEDIATE,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "max_position_embeddings": text["max_position_embeddings"],
            "bos_token_id": text["eos_token_id"],
            "eos_token_id": text["eos_token_id"],
            "pad_token_id": text["pad_token_id"],
        },
        num_query_tokens=4,
        image_token_index=vocabulary.ids["<image>"],
    )  # fmt: skip
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="BlipImageProcessor",
        processor_class="Blip2Processor",
        size={"height": 56, "width": 56},
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="Blip2Processor", num_query_tokens=4)
    _save(folder, config, "Blip2ForConditionalGeneration", text)


def build_command_a(folder: Path) -> None:
    """Write a Command A Vision: tiles of 64 pixels and 2 x 2 tokens, and the whole where there are several."""
    special = [
        "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>",
        "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>",
        *(f"TILE_{n}" for n in range(1, 5)), "TILE_GLOBAL",
    ]  # fmt: skip
    vocabulary = _tokenizer(
        folder, "<|END_OF_TURN_TOKEN|>", special, image_token="<|IMG_PATCH|>", boi_token="<|START_OF_IMG|>",
        eoi_token="<|END_OF_IMG|>", img_line_break_token="<|IMG_LINE_BREAK|>", tile_token="TILE",
        tile_global_token="TILE_GLOBAL",
    )  # fmt: skip
    text = _text(vocabulary, "<|END_OF_TURN_TOKEN|>")
    config = transformers.Cohere2VisionConfig(
        text_config={
            "model_type": "cohere2", "head_dim": HEAD_DIM, "sliding_window": 512,
            "layer_types": ["sliding_attention", "full_attention"], **text,
        },
        vision_config={
            "model_type": "siglip_vision_model", "image_size": 64, "patch_size": 16, "vision_use_head": False,
            **vision_dimensions(),
        },
        downsample_factor=2,
        image_token_id=vocabulary.ids["<|IMG_PATCH|>"],
        alignment_intermediate_size=2 * INTERMEDIATE,
    )  # fmt: skip
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Cohere2VisionImageProcessorFast",
        processor_class="Cohere2VisionProcessor",
        size={"height": 64, "width": 64},
        min_patches=1,
        max_patches=4,
        crop_to_patches=True,
        patch_size=2,  # the processor's word for how many tokens a tile is wide
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="Cohere2VisionProcessor")
    _save(folder, config, "Cohere2VisionForConditionalGeneration", text)


def build_llama4(folder: Path) -> None:
    """Write a Llama 4: tiles of 56 pixels and 2 x 2 tokens, and the whole where there are several."""
    special = [
        "<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|im_start|>", "<|im_end|>", "<|image|>",
        "<|patch|>", "<|image_start|>", "<|image_end|>", "<|tile_x_separator|>", "<|tile_y_separator|>",
    ]  # fmt: skip
    chat = CHAT_PARTS.replace("IMAGE", "<|image|>")
    vocabulary = _tokenizer(folder, "<|eot|>", special, chat_template=chat)
    text = _text(vocabulary, "<|eot|>")
    config = transformers.Llama4Config(
        text_config={
            "head_dim": HEAD_DIM, "intermediate_size_mlp": INTERMEDIATE, "num_local_experts": 4,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 4096,
            "layer_types": ["chunked_attention", "full_attention"], "no_rope_layers": [1, 0], **text,
        },
        vision_config={
            "image_size": 56, "patch_size": 14, "vision_output_dim": HIDDEN, "projector_input_dim": HIDDEN,
            "projector_output_dim": HIDDEN, **vision_dimensions(), "intermediate_size": 4 * HIDDEN,
        },
        boi_token_index=vocabulary.ids["<|image_start|>"],
        eoi_token_index=vocabulary.ids["<|image_end|>"],
        image_token_index=vocabulary.ids["<|patch|>"],
    )  # fmt: skip
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Llama4ImageProcessorFast",
        processor_class="Llama4Processor",
        size={"height": 56, "width": 56},
        max_patches=4,
        resize_to_max_canvas=False,
        **PIXELS,
    )
    write_json(
        folder,
        "processor_config.json",
        processor_class="Llama4Processor",
        patch_size=14,
        pixel_shuffle_ratio=0.5,
        fake_image_token="<|image|>",
        image_token="<|image|>",
    )
    _save(folder, config, "Llama4ForConditionalGeneration", text)


def build_lfm2(folder: Path) -> None:
    """Write an LFM2-VL, of one layer of convolutions and one of attention: a token is 2 x 2 patches of 16."""
    special = [
        "<|startoftext|>",
        "<|im_start|>",
        "<image>",
        "<|image_start|>",
        "<|image_end|>",
        "<|img_thumbnail|>",
    ]
    special += [f"<|img_row_{row}_col_{column}|>" for row in (1, 2) for column in (1, 2)]
    vocabulary = _tokenizer(
        folder, "<|im_end|>", special, chat_template=CHAT_PARTS.replace("IMAGE", "<image>"),
        image_token="<image>", image_start_token="<|image_start|>", image_end_token="<|image_end|>",
        image_thumbnail="<|img_thumbnail|>",
    )  # fmt: skip
    text = _text(vocabulary, "<|im_end|>")
    config = transformers.Lfm2VlConfig(
        text_config={
            "model_type": "lfm2", "layer_types": ["conv", "full_attention"], "block_ff_dim": INTERMEDIATE,
            "block_auto_adjust_ff_dim": False, "conv_L_cache": 3, "conv_dim": HIDDEN, "block_dim": HIDDEN,
            "block_norm_eps": 1e-5,
            "block_multiple_of": 64, "block_ffn_dim_multiplier": 1.0, **text,
        },
        vision_config={
            "model_type": "siglip2_vision_model", "patch_size": 16, "num_patches": 256,
            "vision_use_head": False,
            **vision_dimensions(),
        },
        image_token_id=vocabulary.ids["<image>"],
        downsample_factor=2,
        projector_hidden_size=HIDDEN,
    )  # fmt: skip
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="Lfm2VlImageProcessorFast",
        processor_class="Lfm2VlProcessor",
        do_image_splitting=False,
        downsample_factor=2,
        encoder_patch_size=16,
        min_image_tokens=4,
        max_image_tokens=64,
        max_num_patches=256,
        tile_size=64,
        min_tiles=2,
        max_tiles=4,
        max_pixels_tolerance=2.0,
        use_thumbnail=False,
        return_row_col_info=True,
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="Lfm2VlProcessor")
    _save(folder, config, "Lfm2VlForConditionalGeneration", text)


def build_interns1(folder: Path) -> None:
    """Write an Intern-S1 as transformers' InternVL, which vLLM runs by the same class: tiles of 56 pixels."""
    special = ["<|im_start|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>"]
    vocabulary = _tokenizer(
        folder, "<|im_end|>", special, chat_template=CHATML, start_image_token="<img>",
        end_image_token="</img>", context_image_token="<IMG_CONTEXT>", video_token="<video>",
    )  # fmt: skip
    text = _text(vocabulary, "<|im_end|>")
    config = transformers.InternVLConfig(
        text_config={"model_type": "qwen2", **text},
        vision_config={"image_size": [56, 56], "patch_size": [14, 14], **vision_dimensions()},
        image_token_id=vocabulary.ids["<IMG_CONTEXT>"],
        image_seq_length=4,
        downsample_ratio=0.5,
    )
    tile = {"height": 56, "width": 56}
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="GotOcr2ImageProcessorFast",
        processor_class="InternVLProcessor",
        size=tile,
        crop_to_patches=True,
        min_patches=1,
        max_patches=12,
        **PIXELS,
    )
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="InternVLVideoProcessor",
        processor_class="InternVLProcessor",
        size=tile,
        **PIXELS,
    )
    write_json(folder, "processor_config.json", processor_class="InternVLProcessor", image_seq_length=4)
    _save(folder, config, "InternVLForConditionalGeneration", text)


def _tokenizer(folder: Path, eos: str, special: list[str], **named: Any) -> Vocabulary:
    return write_tokenizer(folder, ["<|pad|>", eos, *special], eos=eos, pad="<|pad|>", **named)


def _text(vocabulary: Vocabulary, eos: str) -> dict[str, Any]:
    return text_dimensions(vocabulary.size, vocabulary.ids[eos], vocabulary.ids["<|pad|>"])


def _save(folder: Path, config: Any, architecture: str, text: dict[str, Any]) -> None:
    save_config(folder, config, architecture, text["eos_token_id"], text["pad_token_id"])
