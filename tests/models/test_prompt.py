"""Prompts, byte for byte as the seed writes them, and questions that try to break them."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.errors import Code, ItemError
from pipeline.models.prompt import PromptBuilder, stop_token_ids
from pipeline.models.registry import load_spec, model_types
from pipeline.models.spec import Kind, ModelSpec

QUESTION = "What is in it?"


class ChatTokenizer:
    """Renders a chat as InternVL3's template does, for one turn and no system message."""

    def __init__(self, vocabulary: dict[str, int] | None = None) -> None:
        self._vocabulary = vocabulary or {}

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        assert options == {"tokenize": False, "add_generation_prompt": True}
        (turn,) = conversation
        return f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n<|im_start|>assistant\n"

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary


def builder(name: str) -> PromptBuilder:
    return PromptBuilder(load_spec(name), ChatTokenizer())


QWEN_HEAD = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
QWEN_VIDEO = "<|vision_start|><|video_pad|><|vision_end|>"
QWEN_TAIL = "What is in it?<|im_end|>\n<|im_start|>assistant\n"
QWEN = {
    (1, 0): QWEN_HEAD + QWEN_IMAGE + QWEN_TAIL,
    (3, 0): QWEN_HEAD + QWEN_IMAGE + QWEN_IMAGE + QWEN_IMAGE + QWEN_TAIL,
    (0, 1): QWEN_HEAD + QWEN_VIDEO + QWEN_TAIL,
    (1, 1): QWEN_HEAD + QWEN_IMAGE + QWEN_VIDEO + QWEN_TAIL,
    (2, 1): QWEN_HEAD + QWEN_IMAGE + QWEN_IMAGE + QWEN_VIDEO + QWEN_TAIL,
}
ONEVISION_TAIL = "\nWhat is in it?<|im_end|><|im_start|>assistant\n"
INTERNVL_TAIL = "\nWhat is in it?<|im_end|>\n<|im_start|>assistant\n"

PROMPTS: dict[str, dict[tuple[int, int], str]] = {
    "qwen2_5_vl": QWEN,
    "qwen3_vl": QWEN,
    "llava": {
        (1, 0): "USER: <image>\nWhat is in it?\nASSISTANT:",
        (2, 0): "USER: <image><image>\nWhat is in it?\nASSISTANT:",
    },
    "llava-onevision": {
        (1, 0): "<|im_start|>user <image>" + ONEVISION_TAIL,
        (2, 0): "<|im_start|>user <image>\n<image>" + ONEVISION_TAIL,
        (0, 1): "<|im_start|>user <video>" + ONEVISION_TAIL,
        (1, 1): "<|im_start|>user <image>\n<video>" + ONEVISION_TAIL,
    },
    "smolvlm": {
        (1, 0): "<|im_start|>User:<image>What is in it?<end_of_utterance>\nAssistant:",
        (2, 0): "<|im_start|>User:<image><image>What is in it?<end_of_utterance>\nAssistant:",
    },
    "internvl_chat": {
        (1, 0): "<|im_start|>user\n<image>" + INTERNVL_TAIL,
        (2, 0): "<|im_start|>user\n<image>\n<image>" + INTERNVL_TAIL,
        (0, 1): "<|im_start|>user\n<video>" + INTERNVL_TAIL,
        (1, 1): "<|im_start|>user\n<image>\n<video>" + INTERNVL_TAIL,
    },
}


@pytest.mark.parametrize(
    ("name", "counts"), [(n, counts) for n, prompts in PROMPTS.items() for counts in prompts]
)
def test_the_prompt_is_the_seeds(name: str, counts: tuple[int, int]) -> None:
    images, videos = counts
    assert builder(name).build(QUESTION, {"image": images, "video": videos}) == PROMPTS[name][counts]


def test_every_modality_of_every_spec_is_written_out() -> None:
    for name in model_types():
        written = {
            "+".join(kind for kind, count in zip(("image", "video"), counts, strict=True) if count)
            for counts in PROMPTS[name]
        }
        assert written == set(load_spec(name).modalities), name


def test_a_kind_without_media_is_as_one_not_named() -> None:
    assert builder("llava").build(QUESTION, {"image": 1}) == PROMPTS["llava"][1, 0]


@pytest.mark.parametrize("name", model_types())
@pytest.mark.parametrize(
    "question",
    ["{media}", "{question}", "{media}{question}", "{0} {} {{x}} %s \\1 \\g<0> $1", "ü 图 \n\t 'x' \"y\""],
)
def test_a_question_stands_in_the_prompt_as_it_is(name: str, question: str) -> None:
    plain = builder(name).build(QUESTION, {"image": 1})
    assert builder(name).build(question, {"image": 1}) == plain.replace(QUESTION, question)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        *((name, load_spec(name).media["image"].placeholder) for name in model_types()),
        *((name, m.marker) for name in model_types() for m in load_spec(name).media.values()),
        ("qwen2_5_vl", "read <|image_pad|> aloud"),
        ("llava", "<image><image>"),
    ],
)
def test_a_question_with_a_placeholder_is_refused(name: str, question: str) -> None:
    with pytest.raises(ItemError) as refused:
        builder(name).build(f"What is {question}?", {"image": 1})
    assert refused.value.code == Code.PLACEHOLDER_MISMATCH
    assert "question" in refused.value.reason


def test_a_chat_template_that_eats_the_placeholder_is_refused() -> None:
    class Forgetful(ChatTokenizer):
        def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
            return super().apply_chat_template(conversation, **options).replace("<image>", "")

    with pytest.raises(ItemError) as refused:
        PromptBuilder(load_spec("internvl_chat"), Forgetful()).build(QUESTION, {"image": 1})
    assert refused.value.code == Code.PLACEHOLDER_MISMATCH


@pytest.mark.parametrize(
    ("name", "counts", "code", "said"),
    [
        ("llava", {"video": 1}, Code.MODALITY_NOT_SUPPORTED, "takes image, not video"),
        ("smolvlm", {"image": 1, "video": 1}, Code.MODALITY_NOT_SUPPORTED, "takes image, not image+video"),
        ("qwen3_vl", {}, Code.MISSING_MEDIA, "no image"),
        ("qwen3_vl", {"image": 0, "video": 0}, Code.MISSING_MEDIA, "no image"),
    ],
)
def test_media_that_the_model_lacks(name: str, counts: dict[Kind, int], code: Code, said: str) -> None:
    with pytest.raises(ItemError) as refused:
        builder(name).build(QUESTION, counts)
    assert refused.value.code == code
    assert said in refused.value.reason


def test_image_and_video_together_only_where_the_spec_mixes_them() -> None:
    spec = ModelSpec.model_validate(load_spec("llava-onevision").model_dump() | {"mixed": False})
    with pytest.raises(ItemError) as refused:
        PromptBuilder(spec).build(QUESTION, {"image": 1, "video": 1})
    assert refused.value.code == Code.MODALITY_NOT_SUPPORTED


def test_a_chat_prompt_without_its_tokenizer_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        PromptBuilder(load_spec("internvl_chat")).build(QUESTION, {"image": 1})


def test_stop_tokens_that_the_tokenizer_lacks_are_left_out() -> None:
    tokenizer = ChatTokenizer({"<|im_end|>": 7, "<|endoftext|>": 5, "other": 1})
    assert stop_token_ids(load_spec("internvl_chat"), tokenizer) == [5, 7]


def test_stop_token_ids_of_the_spec_come_first() -> None:
    spec = ModelSpec.model_validate(load_spec("internvl_chat").model_dump() | {"stop_token_ids": [9]})
    assert stop_token_ids(spec, ChatTokenizer({"<|end|>": 0})) == [9, 0]
