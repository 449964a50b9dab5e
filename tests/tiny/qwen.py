"""The Qwen-VL family: a token is 2 x 2 patches of 14 or 16 pixels, of one image or two frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers

from tests.tiny.layout import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, PIXELS, text_dimensions, write_json
from tests.tiny.tokenizer import CHATML, write_tokenizer
from tests.tiny.weights import save, save_config

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
_EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": HIDDEN,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
}
_LINEAR: dict[str, Any] = {
    "head_dim": HEAD_DIM,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 128,  # no other on a CPU
    "linear_value_head_dim": 128,
    "linear_num_key_heads": HEADS,
    "linear_num_value_heads": HEADS,
    "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e6, "mrope_interleaved": True,
        "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.25,
    },
}  # fmt: skip


def build_2(folder: Path) -> None:
    """Write a Qwen2-VL: 28 x 28 pixels a token."""
    text, tokens = _tokenizer(folder)
    vision = {
        k: v for k, v in _VISION.items() if k not in ("hidden_size", "intermediate_size", "out_hidden_size")
    }
    config = transformers.Qwen2VLConfig(
        text_config={**text, "rope_parameters": _ROPE},
        vision_config={**vision, "embed_dim": HIDDEN, "hidden_size": HIDDEN, "mlp_ratio": 2, "patch_size": 14},
        **tokens,
    )
    _processors(folder, 14, "Qwen2VLProcessor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor")
    _without_weights(folder, config, "Qwen2VLForConditionalGeneration", text)


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


def build_3_moe(folder: Path) -> None:
    """Write a Qwen3-VL of four experts: 32 x 32 pixels a token."""
    text, tokens = _tokenizer(folder)
    config = transformers.Qwen3VLMoeConfig(
        text_config={
            **text,
            **_EXPERTS,
            "head_dim": HEAD_DIM,
            "rope_parameters": {**_ROPE, "mrope_interleaved": True},
        },
        vision_config={
            **_VISION,
            "patch_size": 16,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        },
        **tokens,
    )
    _processors(folder, 16, "Qwen3VLProcessor", "Qwen2VLImageProcessorFast", "Qwen3VLVideoProcessor")
    _without_weights(folder, config, "Qwen3VLMoeForConditionalGeneration", text)


def build_3_5(folder: Path) -> None:
    """Write a Qwen3.5, of one layer of linear attention and one of full attention."""
    text, tokens = _tokenizer(folder)
    config = transformers.Qwen3_5Config(
        text_config={**text, **_LINEAR},
        vision_config={**_VISION, "patch_size": 16, "num_position_embeddings": 64},
        **tokens,
    )
    _processors(folder, 16, "Qwen3VLProcessor", "Qwen2VLImageProcessorFast", "Qwen3VLVideoProcessor")
    _without_weights(folder, config, "Qwen3_5ForConditionalGeneration", text)


def build_3_5_moe(folder: Path) -> None:
    """Write a Qwen3.5 of four experts."""
    text, tokens = _tokenizer(folder)
    config = transformers.Qwen3_5MoeConfig(
        text_config={**text, **_LINEAR, **_EXPERTS, "shared_expert_intermediate_size": HIDDEN},
        vision_config={**_VISION, "patch_size": 16, "num_position_embeddings": 64},
        **tokens,
    )
    _processors(folder, 16, "Qwen3VLProcessor", "Qwen2VLImageProcessorFast", "Qwen3VLVideoProcessor")
    _without_weights(folder, config, "Qwen3_5MoeForConditionalGeneration", text)


def build_omni(folder: Path) -> None:
    """Write the thinker of a Qwen2.5-Omni: 28 x 28 pixels a token."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|IMAGE|>", "<|VIDEO|>", "<|AUDIO|>"]
    special += [f"<|{kind}_{end}|>" for kind in ("vision", "audio") for end in ("bos", "eos")]
    vocabulary = write_tokenizer(
        folder, special, eos="<|im_end|>", pad="<|endoftext|>", chat_template=CHATML, image_token="<|IMAGE|>",
        video_token="<|VIDEO|>", audio_token="<|AUDIO|>", vision_bos_token="<|vision_bos|>",
        vision_eos_token="<|vision_eos|>", audio_bos_token="<|audio_bos|>", audio_eos_token="<|audio_eos|>",
    )  # fmt: skip
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<|im_end|>"], ids["<|endoftext|>"])
    thinker = {
        "text_config": {**text, "rope_parameters": _ROPE},
        "vision_config": {**_VISION, "patch_size": 14, "window_size": 112, "fullatt_block_indexes": [1]},
        "audio_config": {
            "d_model": HIDDEN, "encoder_layers": 1, "encoder_attention_heads": HEADS,
            "encoder_ffn_dim": INTERMEDIATE, "output_dim": HIDDEN, "num_mel_bins": 128,
        },
        "image_token_index": ids["<|IMAGE|>"],
        "video_token_index": ids["<|VIDEO|>"],
        "audio_token_index": ids["<|AUDIO|>"],
        "vision_start_token_id": ids["<|vision_bos|>"],
        "vision_end_token_id": ids["<|vision_eos|>"],
        "audio_start_token_id": ids["<|audio_bos|>"],
        "audio_end_token_id": ids["<|audio_eos|>"],
        "position_id_per_seconds": 25,
        "seconds_per_chunk": 2,
    }  # fmt: skip
    config = transformers.Qwen2_5OmniConfig(thinker_config=thinker)
    _processors(folder, 14, "Qwen2_5OmniProcessor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor")
    path = folder / "preprocessor_config.json"
    hearing = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "sampling_rate": 16000}
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **hearing}), "utf-8")
    _without_weights(folder, config, "Qwen2_5OmniModel", text)


def build_exaone(folder: Path) -> None:
    """Write an EXAONE-4.5: EXAONE 4 that sees as Qwen2.5-VL does."""
    special = ["[PAD]", "[BOS]", "<|endofturn|>", "<vision>", "</vision>", "<|image_pad|>", "<|video_pad|>"]
    vocabulary = write_tokenizer(folder, special, eos="<|endofturn|>", pad="[PAD]")
    ids = vocabulary.ids
    text = text_dimensions(vocabulary.size, ids["<|endofturn|>"], ids["[PAD]"])
    config = transformers.Exaone4_5_Config(
        text_config={
            **text,
            "head_dim": HEAD_DIM,
            "sliding_window": None,
            "layer_types": ["full_attention"] * 2,
        },
        vision_config={
            **_VISION,
            "num_key_value_heads": HEADS,
            "patch_size": 14,
            "window_size": 112,
            "fullatt_block_indexes": [1],
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )
    _processors(folder, 14, "Exaone4_5_Processor", "Qwen2VLImageProcessor", "Qwen2VLVideoProcessor")
    _without_weights(folder, config, "Exaone4_5_ForConditionalGeneration", text)


def _without_weights(folder: Path, config: Any, architecture: str, text: dict[str, Any]) -> None:
    if "linear_attention" in getattr(config.get_text_config(), "layer_types", ()):
        config.dtype = "bfloat16"  # vLLM's linear attention on a CPU takes no other
    save_config(folder, config, architecture, text["eos_token_id"], text["pad_token_id"])


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
