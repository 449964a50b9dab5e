"""A byte-level BPE tokenizer of some 480 tokens: any text can be encoded, and decoded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.tiny.layout import MAX_POSITIONS, write_json

_CORPUS = [
    "what is in this image? describe the picture in detail.",
    "user: assistant: system: you are a helpful assistant.",
    "the quick brown fox jumps over the lazy dog 0123456789",
    "a red square, a blue circle and a green triangle on a white video frame.",
] * 4

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The chat template of models of the Qwen family."""


@dataclass(frozen=True)
class Vocabulary:
    """The ids of the special tokens, and the size of the embedding (a multiple of 64)."""

    ids: dict[str, int]
    size: int


def write_tokenizer(
    folder: Path, special: Sequence[str], *, eos: str, pad: str, chat_template: str | None = None, **named: str
) -> Vocabulary:
    """Write the tokenizer's files.

    Args:
        special: the special tokens, `eos` and `pad` among them, in the order of their ids.
        named: further roles of special tokens, as `bos_token`.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=480, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder,
        "tokenizer_config.json",
        tokenizer_class="PreTrainedTokenizerFast",
        eos_token=eos,
        pad_token=pad,
        extra_special_tokens=[token for token in special if token not in (eos, pad)],
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
        **named,
    )
    if chat_template is not None:
        (folder / "chat_template.jinja").write_text(chat_template, "utf-8")
    vocabulary = tokenizer.get_vocab()
    ids = {token: vocabulary[token] for token in special}
    return Vocabulary(ids, -(-tokenizer.get_vocab_size() // 64) * 64)
