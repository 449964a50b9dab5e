"""Which tokens a chat template writes for media, found out by asking it."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateError

from pipeline.errors import ConfigError
from pipeline.models.chat import ProcessorTemplate, with_tokens
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec


class Tokenizer:
    """Writes `before`, and for each part what `written` says, or fails as told."""

    eos_token = "</s>"
    chat_template = "there is one"

    def __init__(self, **written: str | Exception) -> None:
        self.written = written

    def apply_chat_template(self, conversation: Any, **_: Any) -> str:
        text = "Some words: "
        for part in conversation[-1]["content"]:
            wrote = part.get("text") or self.written.get(part["type"], str(part))
            if isinstance(wrote, Exception):
                raise wrote
            text += wrote
        return f"{text} Answer:"

    def get_vocab(self) -> dict[str, int]:
        return {"</s>": 2}

    def get_added_vocab(self) -> dict[str, int]:
        return {"<start>": 3, "<pad>": 4, "<clip>": 5}


class Processor:
    """A processor that says what it looks for."""

    chat_template = "there is one"
    image_token = "<pad>"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.apply_chat_template = tokenizer.apply_chat_template


AUTO = load_spec("auto")


def test_what_is_written_for_a_media_is_what_is_counted() -> None:
    tokenizer = Tokenizer(image="<start><pad>", video="<clip>")
    spec = with_tokens(AUTO, tokenizer)
    assert {kind: media.token for kind, media in spec.media.items()} == {
        "image": "<start><pad>",
        "video": "<clip>",
    }
    builder = PromptBuilder(spec, tokenizer)
    assert builder.build("Q", {"image": 2, "video": 1}) == "Some words: <start><pad><start><pad><clip>Q Answer:"


def test_the_processors_own_word_goes_first() -> None:
    spec = with_tokens(AUTO, ProcessorTemplate(Processor(Tokenizer(image="<start><pad>", video="<clip>"))))
    assert spec.media["image"].token == "<pad>"
    assert spec.media["video"].token == "<clip>"


@pytest.mark.parametrize("unknown", [TemplateError("no videos"), TypeError(), KeyError("video"), ""])
def test_a_kind_that_the_template_does_not_know_is_left_out(unknown: str | Exception) -> None:
    written: dict[str, Any] = {"image": "<pad>", "video": unknown}
    spec = with_tokens(AUTO, Tokenizer(**written))
    assert spec.modalities == ["image"]


def test_what_holds_no_token_is_the_template_printing_what_it_does_not_know() -> None:
    with pytest.raises(ConfigError, match="writes nothing for an image"):
        with_tokens(AUTO, Tokenizer())


def test_a_model_without_a_chat_template() -> None:
    with pytest.raises(ConfigError, match="chat template cannot be used: none is set"):
        with_tokens(AUTO, Tokenizer(image=ValueError("none is set")))


def test_specs_that_name_their_tokens_are_left_as_they_are() -> None:
    for name in ("lfm2_vl", "llama4", "internvl_chat", "qwen3_vl"):
        assert with_tokens(load_spec(name), Tokenizer()) is load_spec(name) or with_tokens(
            load_spec(name), Tokenizer()
        ) == load_spec(name)


def test_a_processor_without_a_template_has_its_tokenizers() -> None:
    processor = Processor(Tokenizer(image="<pad>"))
    processor.chat_template = ""
    template = ProcessorTemplate(processor)
    assert template.apply_chat_template([{"content": [{"type": "image"}]}]) == "Some words: <pad> Answer:"
    assert (template.eos_token, template.get_vocab()) == ("</s>", {"</s>": 2})
