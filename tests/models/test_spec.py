"""What a spec file may say, and what not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.models.registry import load_spec, model_types
from pipeline.models.spec import ModelSpec


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
    assert ModelSpec.model_validate(spec_with(prompt={"template": "{media} OCR:"})).ignores_question
    ignoring = {name for name in model_types() if load_spec(name).ignores_question}
    assert ignoring == {"lightonocr", "paligemma", "paligemma2", "florence2"}


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
        ({"prompt": {"template": "{media}", "parts": True}}, "prompt", "go with `chat`"),
        ({"prompt": {"template": "{media}", "system": "x"}}, "prompt", "go with `chat`"),
        ({"lora": {"name": "a", "path": "b", "id": 0}}, "lora.id", "greater than 0"),
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
