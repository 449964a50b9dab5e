"""A tiny LLaVA-1.5: every image is cropped to 56 x 56 and becomes 4 x 4 tokens."""

from __future__ import annotations

from pathlib import Path

from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

from tests.tiny.layout import HEAD_DIM, HIDDEN, PIXELS, text_dimensions, vision_dimensions, write_json
from tests.tiny.tokenizer import write_tokenizer
from tests.tiny.weights import save


def build(folder: Path) -> None:
    """Write the model."""
    special = ["<s>", "</s>", "<pad>", "<image>"]
    vocabulary = write_tokenizer(folder, special, eos="</s>", pad="<pad>", bos_token="<s>")
    ids = vocabulary.ids
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            image_size=56, patch_size=14, projection_dim=HIDDEN, **vision_dimensions(layers=3)
        ),
        text_config=LlamaConfig(
            head_dim=HEAD_DIM, **text_dimensions(vocabulary.size, ids["</s>"], ids["<pad>"])
        ),
        image_token_index=ids["<image>"],
        image_seq_length=16,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    write_json(
        folder,
        "preprocessor_config.json",
        image_processor_type="CLIPImageProcessor",
        size={"shortest_edge": 56},
        crop_size={"height": 56, "width": 56},
        do_center_crop=True,
        **PIXELS,
    )
    write_json(
        folder,
        "processor_config.json",
        processor_class="LlavaProcessor",
        image_token="<image>",
        patch_size=14,
        num_additional_image_tokens=1,
        vision_feature_select_strategy="default",
    )
    save(folder, LlavaForConditionalGeneration, config)
