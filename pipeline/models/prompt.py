"""The text of a prompt: the model's own words around the item's media and question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.errors import Code, ItemError
from pipeline.models.spec import Kind, ModelSpec

_SLOT = re.compile(r"\{(media|question)\}")


class Tokenizer(Protocol):
    """What is used of a Hugging Face tokenizer."""

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """The conversation in the model's own form."""

    def get_vocab(self) -> dict[str, int]:
        """Token → id."""


@dataclass(frozen=True)
class PromptBuilder:
    """Builds the prompts of one model. `tokenizer` is needed by specs with a chat template only."""

    spec: ModelSpec
    tokenizer: Tokenizer | None = None

    def build(self, question: str, counts: Mapping[Kind, int]) -> str:
        """The whole prompt for one item.

        Args:
            question: as asked; text that looks like a placeholder is refused, not replaced.
            counts: how many images and videos the item brings.

        Raises:
            ItemError: the model lacks the modality, or the prompt would not hold exactly those media.
        """
        self._check_modality(counts)
        placeholders = [
            media.placeholder for kind, media in self.spec.media.items() for _ in range(counts.get(kind, 0))
        ]
        values = {"media": self.spec.separator.join(placeholders), "question": question}
        form = self.spec.prompt.template or self.spec.prompt.chat or ""
        text = _SLOT.sub(lambda slot: values[slot.group(1)], form)
        if self.spec.prompt.chat is not None:
            text = self._in_chat(text)
        for kind, media in self.spec.media.items():
            found = text.count(media.marker)
            if found != counts.get(kind, 0):
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

    def _in_chat(self, content: str) -> str:
        if self.tokenizer is None:
            raise ValueError("this model's prompt needs its tokenizer")
        conversation = [{"role": "user", "content": content}]
        text: str = self.tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        return text


def stop_token_ids(spec: ModelSpec, tokenizer: Tokenizer) -> list[int]:
    """The ids of the spec's stop tokens, in its order, without those that the tokenizer lacks."""
    vocabulary = tokenizer.get_vocab()
    named = [vocabulary[token] for token in spec.stop_tokens if token in vocabulary]
    return [*spec.stop_token_ids, *named]
