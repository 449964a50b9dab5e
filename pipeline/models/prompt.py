"""The text of a prompt: the model's own words around the item's media and question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.errors import Code, ItemError
from pipeline.models.spec import Kind, MediaSpec, ModelSpec
from pipeline.models.special_tokens import SpecialTokens

_SLOT = re.compile(r"\{(media|question)\}")


class Tokenizer(Protocol):
    """What is used of a Hugging Face tokenizer (its chat template may be the processor's)."""

    eos_token: str | None

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """The conversation in the model's own form."""

    def get_vocab(self) -> dict[str, int]:
        """Token → id."""

    def get_added_vocab(self) -> dict[str, int]:
        """The tokens that are no words of the language: token → id."""


@dataclass(frozen=True)
class PromptBuilder:
    """Builds the prompts of one model. `tokenizer` is needed by specs with a chat template only, `special`
    where questions come from others."""

    spec: ModelSpec
    tokenizer: Tokenizer | None = None
    special: SpecialTokens | None = None

    def quoted(self, text: str) -> str:
        """Others' words as they may stand in a question: none of them acts as a special token.

        Raises:
            ItemError: QUESTION_NOT_ALLOWED.
        """
        return text if self.special is None else self.special.quoted(text)

    def build(self, question: str, counts: Mapping[Kind, int]) -> str:
        """The whole prompt for one item.

        Args:
            question: as asked; text that looks like a placeholder is refused, not replaced.
            counts: how many images and videos the item brings.

        Raises:
            ItemError: the model lacks the modality, or the prompt would not hold exactly those media.
        """
        self._check_modality(counts)
        if self.spec.prompt.chat is None:
            text = filled(self.spec, question, counts)
        else:
            if self.tokenizer is None:
                raise ValueError("this model's prompt needs its tokenizer")
            text = rendered(self.spec, self.tokenizer, question, counts)
        for kind, media in self.spec.media.items():
            found, expected = media.markers_in(text), _expected(self.spec, media, counts.get(kind, 0))
            if found != expected:
                raise ItemError(
                    Code.PLACEHOLDER_MISMATCH,
                    f"the prompt has {media.marker} {found} times for {counts.get(kind, 0)} {kind}(s): "
                    "does the question contain it?",
                )
        return text

    def _check_modality(self, counts: Mapping[Kind, int]) -> None:
        kinds = [kind for kind, count in counts.items() if count]
        wanted = "+".join(sorted(kinds))
        if not kinds:
            raise ItemError(Code.MISSING_MEDIA, "the item has no image and no video")
        if wanted not in self.spec.modalities:
            raise ItemError(
                Code.MODALITY_NOT_SUPPORTED,
                f"the model takes {', '.join(self.spec.modalities)}, not {wanted}",
            )


def filled(spec: ModelSpec, question: str, counts: Mapping[Kind, int]) -> str:
    """The spec's own words with placeholders and question: the whole prompt, or the user's turn of a chat."""
    placeholders = [
        (media.placeholder or "").replace("{n}", str(number))
        for kind, media in spec.media.items()
        for number in range(1, counts.get(kind, 0) + 1)
    ]
    values = {"media": spec.separator.join(placeholders), "question": question}
    return _SLOT.sub(lambda slot: values[slot.group(1)], spec.prompt.template or spec.prompt.chat or "")


def chat_messages(spec: ModelSpec, question: str, counts: Mapping[Kind, int]) -> list[dict[str, Any]]:
    """The conversation that the chat template gets."""
    system, content = spec.prompt.system, filled(spec, question, counts)
    if not spec.prompt.parts:
        said = [{"role": "system", "content": system}] if system else []
        return [*said, {"role": "user", "content": content}]
    parts: list[dict[str, Any]] = []
    for piece in re.split(r"(\{media\}|\{question\})", spec.prompt.chat or ""):
        if piece == "{media}":
            parts += [{"type": kind} for kind in spec.media for _ in range(counts.get(kind, 0))]
        elif text := question if piece == "{question}" else piece:
            parts.append({"type": "text", "text": text})
    said_parts = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
    return [*said_parts, {"role": "user", "content": parts}]


def rendered(spec: ModelSpec, tokenizer: Tokenizer, question: str, counts: Mapping[Kind, int]) -> str:
    """The prompt as the model's chat template writes it."""
    messages = chat_messages(spec, question, counts)
    text: str = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, **spec.prompt.options
    )
    return text


def _expected(spec: ModelSpec, media: MediaSpec, count: int) -> int:
    # Where neither the spec nor the chat template writes placeholders, vLLM puts them in after the check.
    return count if media.placeholder or spec.prompt.parts else 0


def stop_token_ids(spec: ModelSpec, tokenizer: Tokenizer) -> list[int]:
    """The ids of the spec's stop tokens, in its order, without those that the tokenizer lacks."""
    vocabulary = tokenizer.get_vocab()
    named = [tokenizer.eos_token if token == "{eos}" else token for token in spec.stop_tokens]
    return [*spec.stop_token_ids, *(vocabulary[token] for token in named if token in vocabulary)]
