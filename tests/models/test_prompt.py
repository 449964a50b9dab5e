"""Prompts, byte for byte as the seed writes them, and questions that try to break them."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.errors import Code, ItemError
from pipeline.models.chat import with_tokens
from pipeline.models.prompt import PromptBuilder, chat_messages, stop_token_ids
from pipeline.models.registry import load_spec, model_types
from pipeline.models.spec import Kind, ModelSpec

QUESTION = "What is in it?"


class ChatTokenizer:
    """Renders a chat as InternVL3's template does; parts as the templates of LFM2-VL and Llama 4 do."""

    eos_token = "<|im_end|>"

    def __init__(self, vocabulary: dict[str, int] | None = None, **tokens: str) -> None:
        self._vocabulary = vocabulary or {}
        self._tokens = {"image": "<image>", "video": "<video>"} | tokens

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        assert options.pop("tokenize") is False
        assert options.pop("add_generation_prompt") is True
        turns = [
            f"<|im_start|>{turn['role']}\n{self._text(turn['content'])}<|im_end|>\n" for turn in conversation
        ]
        return "".join(turns) + f"<|im_start|>assistant\n{options.get('thought', '')}"

    def _text(self, content: Any) -> str:
        if isinstance(content, str):
            return content
        return "".join(part.get("text") or self._tokens[part["type"]] for part in content)

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def get_added_vocab(self) -> dict[str, int]:
        return dict.fromkeys(self._tokens.values(), 0)


def builder(name: str) -> PromptBuilder:
    spec = load_spec(name)
    tokens = {kind: media.marker for kind, media in spec.media.items() if media.marker}
    tokenizer = ChatTokenizer(**tokens)
    return PromptBuilder(with_tokens(spec, tokenizer), tokenizer)


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


def test_a_kind_without_media_is_as_one_not_named() -> None:
    assert builder("llava").build(QUESTION, {"image": 1}) == PROMPTS["llava"][1, 0]


@pytest.mark.parametrize("name", model_types())
@pytest.mark.parametrize(
    "question",
    ["{media}", "{question}", "{media}{question}", "{0} {} {{x}} %s \\1 \\g<0> $1", "ü 图 \n\t 'x' \"y\""],
)
def test_a_question_stands_in_the_prompt_as_it_is(name: str, question: str) -> None:
    counts: dict[Kind, int] = {next(iter(load_spec(name).media)): 1}
    plain = builder(name).build(QUESTION, counts)
    assert builder(name).build(question, counts) == plain.replace(QUESTION, question)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        *(
            (name, text.replace("{n}", "7"))
            for name in model_types()
            if not load_spec(name).ignores_question
            for media in load_spec(name).media.values()
            for text in (media.placeholder, media.marker)
            if text
        ),
        ("qwen2_5_vl", "read <|image_pad|> aloud"),
        ("llava", "<image><image>"),
    ],
)
def test_a_question_with_a_placeholder_is_refused(name: str, question: str) -> None:
    with pytest.raises(ItemError) as refused:
        builder(name).build(f"What is {question}?", {next(iter(load_spec(name).media)): 1})
    assert refused.value.code == Code.PLACEHOLDER_MISMATCH
    assert "question" in refused.value.reason


def test_placeholders_are_numbered_where_the_model_numbers_them() -> None:
    assert (
        builder("phi3_v")
        .build(QUESTION, {"image": 3})
        .startswith("<|user|>\n<|image_1|>\n<|image_2|>\n<|image_3|>\nWhat")
    )
    both = builder("ernie45_vl").build(QUESTION, {"image": 2, "video": 1})
    assert both == (
        "<|begin_of_sentence|>User: What is in it?"
        "Picture 1:<|IMAGE_START|><|image@placeholder|><|IMAGE_END|>"
        "Picture 2:<|IMAGE_START|><|image@placeholder|><|IMAGE_END|>"
        "Video 1:<|VIDEO_START|><|video@placeholder|><|VIDEO_END|>\nAssistant: <think></think>"
    )


def test_each_media_has_its_own_placeholder() -> None:
    # Three and one, so that a template that forgets to repeat or repeats the wrong one is noticed.
    for name in model_types():
        spec = builder(name).spec
        for kind, media in spec.media.items():
            text = builder(name).build(QUESTION, {kind: 3})
            assert media.markers_in(text) == (3 if media.placeholder or spec.prompt.parts else 0), name


def test_vllm_itself_puts_in_what_has_no_placeholder() -> None:
    assert builder("blip-2").build(QUESTION, {"image": 1}) == "Question: What is in it? Answer:"
    assert builder("paligemma").build(QUESTION, {"image": 1}) == "caption en"


def chat_spec(**prompt: Any) -> ModelSpec:
    media = {"image": {"token": "<image>"}, "video": {"token": "<video>"}}
    return ModelSpec.model_validate(
        {"repository": "a/b", "media": media, "mixed": True, "prompt": {"parts": True, **prompt}}
    )


def test_parts_stand_where_the_form_has_them() -> None:
    spec = chat_spec(chat="{media}Now: {question}")
    assert chat_messages(spec, "Q", {"image": 2, "video": 1}) == [
        {
            "role": "user",
            "content": [
                {"type": "image"},
                {"type": "image"},
                {"type": "video"},
                {"type": "text", "text": "Now: "},
                {"type": "text", "text": "Q"},
            ],
        }
    ]
    last = PromptBuilder(chat_spec(chat="{question}{media}"), ChatTokenizer()).build("Q", {"image": 1})
    assert last == "<|im_start|>user\nQ<image><|im_end|>\n<|im_start|>assistant\n"


def test_system_and_options_reach_the_chat_template() -> None:
    spec = chat_spec(chat="{media}{question}", system="Be brief.", options={"thought": "<think>"})
    assert PromptBuilder(spec, ChatTokenizer()).build("Q", {"image": 1}) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<image>Q<|im_end|>\n"
        "<|im_start|>assistant\n<think>"
    )


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


def test_eos_is_the_tokenizers_own_end_of_text() -> None:
    assert load_spec("h2ovl_chat").stop_tokens == ["{eos}"]
    assert stop_token_ids(load_spec("h2ovl_chat"), ChatTokenizer({"<|im_end|>": 7})) == [7]
