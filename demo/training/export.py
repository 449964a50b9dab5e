"""Makes a model folder of trained weights: one that vLLM and transformers load without code of ours.

python -m demo.training.export out/shapes-vl/weights.safetensors out/shapes-vl/model
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from demo.training.augment import IMAGE_MEAN, IMAGE_STD
from demo.training.grids import PATCH, TOKEN
from demo.training.model import Sizes
from demo.training.prompt import IMAGE_PAD, VIDEO_PAD
from demo.training.tokenizer import END_OF_TURN, PADDING, SPECIAL_TOKENS, build_tokenizer, find_id

_LONGEST_SEQUENCE = 2048
_LEAST_TOKENS, _MOST_TOKENS = 4, 256  # of a picture, or of a pair of frames
_CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "{% if loop.first and m['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% endif %}"
    "<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}"
    "{% if c['type'] in ('image','image_url') %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif c['type'] in ('video','video_url') %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def export_model(weights: Path, folder: Path, dtype: str = "bfloat16") -> None:
    """Writes weights, tokenizer, processor and configuration; `dtype` is `bfloat16` or `float32`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(_CHAT_TEMPLATE)
    for name, content in (
        ("tokenizer_config.json", _tokenizer_config()),
        ("generation_config.json", _generation_config(tokenizer)),
        ("preprocessor_config.json", _image_processor_config()),
        ("video_preprocessor_config.json", _video_processor_config()),
        ("processor_config.json", {"processor_class": "Qwen2_5_VLProcessor"}),
        ("config.json", _model_config(tokenizer, Sizes(), dtype)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1))
    target = {"bfloat16": torch.bfloat16, "float32": torch.float32}[dtype]
    tensors = {name: tensor.to(target) for name, tensor in load_file(weights).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TURN,
        "pad_token": PADDING,
        "clean_up_tokenization_spaces": False,
        "model_max_length": _LONGEST_SEQUENCE,
        "extra_special_tokens": [token for token in SPECIAL_TOKENS if token not in (END_OF_TURN, PADDING)],
        "chat_template": _CHAT_TEMPLATE,
    }


def _generation_config(tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "eos_token_id": find_id(tokenizer, END_OF_TURN),
        "pad_token_id": find_id(tokenizer, PADDING),
        "do_sample": False,
    }


def _pixel_limits() -> dict[str, Any]:
    least, most = _LEAST_TOKENS * TOKEN**2, _MOST_TOKENS * TOKEN**2
    return {
        "size": {"shortest_edge": least, "longest_edge": most},  # pixels of the area, whatever the names say
        "min_pixels": least,
        "max_pixels": most,
    }


def _pixel_steps() -> dict[str, Any]:
    return {
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": list(IMAGE_MEAN),
        "image_std": list(IMAGE_STD),
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "resample": 3,
        "rescale_factor": 1 / 255,
    }


def _image_processor_config() -> dict[str, Any]:
    kind = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}
    return kind | _pixel_limits() | _pixel_steps()


def _video_processor_config() -> dict[str, Any]:
    kind = {"video_processor_type": "Qwen2VLVideoProcessor", "processor_class": "Qwen2_5_VLProcessor"}
    frames = {"fps": 2, "min_frames": 4, "max_frames": 8, "do_sample_frames": False}
    return kind | _pixel_limits() | frames | _pixel_steps()


def _model_config(tokenizer: Tokenizer, sizes: Sizes, dtype: str) -> dict[str, Any]:
    ends = {
        "bos_token_id": find_id(tokenizer, END_OF_TURN),
        "eos_token_id": find_id(tokenizer, END_OF_TURN),
        "pad_token_id": find_id(tokenizer, PADDING),
    }
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "torch_dtype": dtype,
        "tie_word_embeddings": False,
        "image_token_id": find_id(tokenizer, IMAGE_PAD),
        "video_token_id": find_id(tokenizer, VIDEO_PAD),
        "vision_start_token_id": find_id(tokenizer, "<|vision_start|>"),
        "vision_end_token_id": find_id(tokenizer, "<|vision_end|>"),
        **ends,
        "text_config": _text_config(sizes, dtype) | ends,
        "vision_config": _vision_config(sizes),
    }


def _text_config(sizes: Sizes, dtype: str) -> dict[str, Any]:
    return {
        "model_type": "qwen2_5_vl_text",
        "vocab_size": sizes.vocabulary,
        "hidden_size": sizes.text_width,
        "intermediate_size": sizes.text_inner,
        "num_hidden_layers": sizes.text_layers,
        "num_attention_heads": sizes.text_heads,
        "num_key_value_heads": sizes.text_shared_heads,
        "max_position_embeddings": _LONGEST_SEQUENCE,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "torch_dtype": dtype,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": sizes.rotary_base,
            "mrope_section": list(sizes.rotary_sections),
        },
    }


def _vision_config(sizes: Sizes) -> dict[str, Any]:
    return {
        "model_type": "qwen2_5_vl_vision",
        "depth": sizes.vision_layers,
        "hidden_size": sizes.vision_width,
        "intermediate_size": sizes.vision_inner,
        "out_hidden_size": sizes.text_width,
        "num_heads": sizes.vision_heads,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "spatial_patch_size": PATCH,
        "temporal_patch_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": list(range(sizes.vision_layers)),  # so no block uses the window
        "tokens_per_second": 2,
        "hidden_act": "silu",
        "in_channels": 3,
        "in_chans": 3,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="weights.safetensors or average.safetensors of a run")
    parser.add_argument("folder", type=Path, help="the model folder to make")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    options = parser.parse_args()
    export_model(options.weights, options.folder, options.dtype)
    print(f"{options.folder}: {(options.folder / 'model.safetensors').stat().st_size:,} bytes of weights")


if __name__ == "__main__":
    main()
