"""Tiny LLaVA-NeXT (tiles of 56 x 56 in grids up to 2 x 2) and LLaVA-NeXT-Video (frames of 8 x 8 tokens)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import CLIPVisionConfig, LlamaConfig, LlavaNextConfig, LlavaNextVideoConfig

from tests.tiny.layout import HEAD_DIM, HIDDEN, PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save_config

_GRIDS = [[56, 112], [112, 56], [112, 112]]
_FRAME = 224  # vLLM's pooling divides it by the area of a patch


def build(folder: Path) -> None:
    """Write a LLaVA-NeXT."""
    _build(folder, LlavaNextConfig, "LlavaNext", {})


def build_video(folder: Path) -> None:
    """Write a LLaVA-NeXT-Video."""
    write_json(
        folder,
        "video_preprocessor_config.json",
        video_processor_type="LlavaNextVideoVideoProcessor",
        processor_class="LlavaNextVideoProcessor",
        size={"shortest_edge": _FRAME},
        crop_size={"height": _FRAME, "width": _FRAME},
        do_center_crop=True,
        **PIXELS,
    )
    pooled = {"spatial_pool_mode": "average", "spatial_pool_stride": 2}
    _build(folder, LlavaNextVideoConfig, "LlavaNextVideo", pooled)


def _build(folder: Path, config_class: Any, family: str, fields: dict[str, Any]) -> None:
    special = ["<s>", "</s>", "<pad>", "<image>", "<video>"]
    vocabulary = write_tokenizer(folder, special, eos="</s>", pad="<pad>", bos_token="<s>")
    ids = vocabulary.ids
    config = config_class(
        vision_config=CLIPVisionConfig(
            image_size=_FRAME if "Video" in family else 56,
            patch_size=14,
            projection_dim=HIDDEN,
            **vision_dimensions(layers=3),
        ),
        text_config=LlamaConfig(
            head_dim=HEAD_DIM, **text_dimensions(vocabulary.size, ids["</s>"], ids["<pad>"])
        ),
        image_token_index=ids["<image>"],
        image_grid_pinpoints=_GRIDS,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        **fields,
        **({"video_token_index": ids["<video>"]} if "Video" in family else {}),
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="LlavaNextImageProcessor",
        processor_class=f"{family}Processor",
        size={"shortest_edge": 56},
        crop_size={"height": 56, "width": 56},
        image_grid_pinpoints=_GRIDS,
        do_center_crop=True,
        do_pad=True,
        **PIXELS,
    )
    write_json(
        folder,
        "processor_config.json",
        processor_class=f"{family}Processor",
        image_token="<image>",
        patch_size=14,
        num_additional_image_tokens=1,
        vision_feature_select_strategy="default",
        **({"video_token": "<video>"} if "Video" in family else {}),
    )
    save_config(folder, config, f"{family}ForConditionalGeneration", ids["</s>"], ids["<pad>"])
