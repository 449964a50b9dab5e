"""A tiny SmolVLM and Idefics3 with the real ones' tiles: of 384 pixels and 3 x 3 tokens, of 364 and 2 x 2.

The tile size must be the real one, since the spec gives it as an engine argument. SmolVLM's processor needs the
package num2words (for videos); Idefics3 is the same model without videos, and vLLM's SmolVLM a subclass of it.
"""

from __future__ import annotations

from pathlib import Path

import transformers

from tests.tiny.layout import HEAD_DIM, PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save

_TILE = 384
_IDEFICS_TILE = 364
_MERGE = 2


def build(folder: Path) -> None:
    """Write the model as SmolVLM."""
    _build(folder, "SmolVLM", _TILE, 64)
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="SmolVLMVideoProcessor",
        processor_class="SmolVLMProcessor",
        size={"longest_edge": _TILE},
        max_image_size={"longest_edge": _TILE},
        video_sampling={"fps": 1, "max_frames": 4, "video_size": {"longest_edge": _TILE}},
        do_pad=True,
        **PIXELS,
    )


def build_idefics3(folder: Path) -> None:
    """Write the model as Idefics3."""
    _build(folder, "Idefics3", _IDEFICS_TILE, 91)


def _build(folder: Path, family: str, tile: int, patch: int) -> None:
    rows = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    vocabulary = write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>",
         "<global-img>", *rows],
        eos="<end_of_utterance>",
        pad="<|endoftext|>",
        fake_image_token="<fake_token_around_image>",
        image_token="<image>",
        global_image_token="<global-img>",
        end_of_utterance_token="<end_of_utterance>",
    )  # fmt: skip
    eos, pad = vocabulary.ids["<end_of_utterance>"], vocabulary.ids["<|endoftext|>"]
    config = getattr(transformers, f"{family}Config")(
        vision_config={"image_size": tile, "patch_size": patch, **vision_dimensions()},
        text_config={
            "model_type": "llama",
            "head_dim": HEAD_DIM,
            **text_dimensions(vocabulary.size, eos, pad),
        },
        image_token_id=vocabulary.ids["<image>"],
        scale_factor=_MERGE,
        pad_token_id=pad,
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type=f"{family}ImageProcessor",
        processor_class=f"{family}Processor",
        size={"longest_edge": 2 * tile},
        max_image_size={
            "longest_edge": tile if family == "Idefics3" else 2 * tile
        },  # SmolVLM's spec says its own
        do_image_splitting=True,
        do_pad=True,
        **PIXELS,
    )
    image_seq_len = (tile // patch // _MERGE) ** 2
    write_json(
        folder, "processor_config.json", processor_class=f"{family}Processor", image_seq_len=image_seq_len
    )
    save(folder, getattr(transformers, f"{family}ForConditionalGeneration"), config)
