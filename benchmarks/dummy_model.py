"""Model folders of real dimensions without weights: for `load_format=dummy`, where speed is what is asked.

    python -m benchmarks.dummy_model 3b FOLDER [--weights]

With `--weights` they have random ones: vLLM's dummies differ with the number of GPUs that share them.

The dimensions of `3b` and `7b` are those of the config.json of Qwen/Qwen2.5-VL-3B-Instruct and 7B-Instruct;
`256m` is the same architecture with a 12-layer language model and a 12-layer tower of width 768, `tiny` one for
CPUs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

VOCABULARY = 151_936
FIRST_SPECIAL = 151_643
SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
ID = {token: FIRST_SPECIAL + number for number, token in enumerate(SPECIAL)}

TEXT: dict[str, dict[str, Any]] = {
    "7b": {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
           "num_attention_heads": 28, "num_key_value_heads": 4, "section": [16, 24, 24]},
    "3b": {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
           "num_attention_heads": 16, "num_key_value_heads": 2, "section": [16, 24, 24]},
    "256m": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
             "num_attention_heads": 12, "num_key_value_heads": 4, "section": [8, 12, 12]},
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 2, "num_key_value_heads": 2, "section": [4, 6, 6]},
}  # fmt: skip
VISION: dict[str, dict[str, Any]] = {
    "3b": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
           "fullatt_block_indexes": [7, 15, 23, 31]},
    "tiny": {"depth": 1, "hidden_size": 64, "intermediate_size": 64, "num_heads": 2,
             "fullatt_block_indexes": []},
    "256m": {"depth": 12, "hidden_size": 768, "intermediate_size": 2048, "num_heads": 12,
             "fullatt_block_indexes": [2, 5, 8, 11]},
}  # fmt: skip
VISION["7b"] = VISION["3b"]
UNTIED = {"7b"}
"""Sizes with output weights of their own."""
PIXELS = {"min_pixels": 3136, "max_pixels": 12845056}
PROCESSOR = {
    "processor_class": "Qwen2_5_VLProcessor", "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
    "do_resize": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True, "resample": 3,
    "rescale_factor": 1 / 255, "size": {"shortest_edge": 3136, "longest_edge": 12845056}, **PIXELS,
}  # fmt: skip


def make_model(size: str, folder: Path) -> Path:
    """Write the folder: configuration, processor, and a byte-level tokenizer of the full vocabulary size."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(folder / "tokenizer.json"))
    _write(folder, "config.json", _config(size))
    _write(
        folder, "preprocessor_config.json", {"image_processor_type": "Qwen2VLImageProcessorFast", **PROCESSOR}
    )
    _write(
        folder, "video_preprocessor_config.json", {"video_processor_type": "Qwen2VLVideoProcessor", **PROCESSOR}
    )
    _write(folder, "processor_config.json", {"processor_class": "Qwen2_5_VLProcessor"})
    _write(folder, "generation_config.json", {"eos_token_id": ID["<|im_end|>"]})
    names = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "model_max_length": 131072}
    others = [token for token in SPECIAL if token not in names.values()]
    extra = {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": others}
    _write(folder, "tokenizer_config.json", {**names, **extra, "clean_up_tokenization_spaces": False})
    return folder


def make_weights(folder: Path) -> None:
    """Give the folder's model random weights, always the same on one kind of device, as safetensors."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForImageTextToText.from_config(
            AutoConfig.from_pretrained(folder), dtype=torch.bfloat16
        )
    with tempfile.TemporaryDirectory(dir=folder) as saved:
        model.save_pretrained(saved)
        for file in Path(saved).glob("*.safetensors*"):
            file.rename(folder / file.name)


def _config(size: str) -> dict[str, Any]:
    text = dict(TEXT[size])
    section = text.pop("section")
    ends = {"bos_token_id": ID["<|endoftext|>"], "eos_token_id": ID["<|im_end|>"]}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": section}
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": size not in UNTIED,
        "image_token_id": ID["<|image_pad|>"],
        "video_token_id": ID["<|video_pad|>"],
        "vision_start_token_id": ID["<|vision_start|>"],
        "vision_end_token_id": ID["<|vision_end|>"],
        **ends,
        "text_config": {
            "model_type": "qwen2_5_vl_text", "vocab_size": VOCABULARY, "max_position_embeddings": 128000,
            "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": size not in UNTIED,
            "use_sliding_window": False,
            "torch_dtype": "bfloat16", "rope_parameters": rope, **ends, **text,
        },
        "vision_config": {
            "model_type": "qwen2_5_vl_vision", "patch_size": 14, "spatial_merge_size": 2,
            "spatial_patch_size": 14, "temporal_patch_size": 2, "window_size": 112, "tokens_per_second": 2,
            "hidden_act": "silu", "in_channels": 3, "in_chans": 3, "out_hidden_size": text["hidden_size"],
            **VISION[size],
        },
    }  # fmt: skip


def _tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    filler = [f"filler{number}" for number in range(FIRST_SPECIAL - len(alphabet))]
    vocabulary = {token: number for number, token in enumerate([*alphabet, *filler])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def _write(folder: Path, name: str, content: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(content, indent=1), "utf-8")


def main() -> None:
    """Make one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", choices=sorted(TEXT))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", action="store_true")
    arguments = parser.parse_args()
    print(make_model(arguments.size, arguments.folder))
    if arguments.weights:
        make_weights(arguments.folder)


if __name__ == "__main__":
    main()
