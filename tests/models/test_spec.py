"""The six specs against the facts of the seed, and what a spec file may not say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.models.registry import load_spec
from pipeline.models.spec import ModelSpec

QWEN_PIXELS = {"mm_processor_kwargs": {"min_pixels": 784, "max_pixels": 1003520, "fps": 1}}

SEED: dict[str, dict[str, Any]] = {
    "qwen2_5_vl": {
        "repository": "Qwen/Qwen2.5-VL-3B-Instruct",
        "modalities": ["image", "video", "image+video"],
        "needs_metadata": True,
        "engine_args": QWEN_PIXELS,
        "example_engine_args": {"max_model_len": 4096, "max_num_seqs": 5},
    },
    "qwen3_vl": {
        "repository": "Qwen/Qwen3-VL-4B-Instruct",
        "modalities": ["image", "video", "image+video"],
        "needs_metadata": True,
        "engine_args": QWEN_PIXELS,
        "example_engine_args": {"max_model_len": 4096, "max_num_seqs": 5},
    },
    "llava": {
        "repository": "llava-hf/llava-1.5-7b-hf",
        "modalities": ["image"],
        "example_engine_args": {"max_model_len": 4096},
    },
    "llava-onevision": {
        "repository": "llava-hf/llava-onevision-qwen2-7b-ov-hf",
        "modalities": ["image", "video", "image+video"],
        "needs_metadata": False,
        "example_engine_args": {"max_model_len": 16384},
    },
    "smolvlm": {
        "repository": "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        "modalities": ["image"],
        "engine_args": {"mm_processor_kwargs": {"max_image_size": {"longest_edge": 384}}},
        "example_engine_args": {"max_model_len": 8192, "max_num_seqs": 2, "enforce_eager": True},
    },
    "internvl_chat": {
        "repository": "OpenGVLab/InternVL3-2B",
        "modalities": ["image", "video", "image+video"],
        "needs_metadata": False,
        "trust_remote_code": True,
        "example_engine_args": {"max_model_len": 8192},
        "stop_tokens": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|end|>"],
    },
}


@pytest.mark.parametrize("name", SEED)
def test_spec_says_what_the_seed_says(name: str) -> None:
    spec, seed = load_spec(name), SEED[name]
    assert spec.repository == seed["repository"]
    assert spec.modalities == seed["modalities"]
    assert spec.engine_args == seed.get("engine_args", {})
    assert spec.example_engine_args == seed["example_engine_args"]
    assert spec.trust_remote_code == seed.get("trust_remote_code", False)
    assert spec.stop_tokens == seed.get("stop_tokens", [])
    if "video" in spec.media:
        assert spec.media["video"].needs_metadata == seed["needs_metadata"]


def spec_with(**changed: Any) -> dict[str, Any]:
    return {
        "repository": "owner/model",
        "media": {"image": {"placeholder": "<image>"}},
        "prompt": {"template": "{media} {question}"},
    } | changed


def test_the_smallest_spec() -> None:
    spec = ModelSpec.model_validate(spec_with())
    assert spec.modalities == ["image"]
    assert spec.media["image"].marker == "<image>"


def test_the_marker_is_the_token_where_there_is_one() -> None:
    media = {"image": {"placeholder": "<a><pad><b>", "token": "<pad>"}}
    assert ModelSpec.model_validate(spec_with(media=media)).media["image"].marker == "<pad>"


def test_a_question_may_be_ignored() -> None:
    ModelSpec.model_validate(spec_with(prompt={"template": "{media} OCR:"}))


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"prompt": {}}, "prompt", "set either"),
        ({"prompt": {"template": "{media}", "chat": "{media}"}}, "prompt", "set either"),
        ({"prompt": {"template": "{question}"}}, "prompt", "{media} once"),
        ({"prompt": {"chat": "{media}{media}"}}, "prompt", "{media} once"),
        ({"prompt": {"chat": "{media}{question}{question}"}}, "prompt", "{question} once"),
        ({"media": {}}, "media", "at least 1"),
        ({"media": {"audio": {"placeholder": "<a>"}}}, "media.audio.[key]", "'image' or 'video'"),
        ({"media": {"image": {"placeholder": ""}}}, "media.image.placeholder", "at least 1"),
        ({"media": {"image": {"placeholder": "<a>", "token": "<b>"}}}, "media.image", "'<b>' once"),
        ({"media": {"image": {"placeholder": "<a><a>", "token": "<a>"}}}, "media.image", "'<a>' once"),
        ({"max_model_len": 4096}, "max_model_len", "not permitted"),
        (
            {"media": {"image": {"placeholder": "<a>", "shrink": {"pixels": 1}}}},
            "media.image.shrink.pixels",
            "not",
        ),
    ],
)
def test_a_wrong_spec_is_refused(changed: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ModelSpec.model_validate(spec_with(**changed))
    (error,) = refused.value.errors()
    assert ".".join(map(str, error["loc"])) == field
    assert message in error["msg"]


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_spec("llava").repository = "owner/other"
