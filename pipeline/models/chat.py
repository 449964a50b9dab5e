"""A model's own chat template: where it is, and which of its tokens stand for media."""

from __future__ import annotations

from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.prompt import Tokenizer, rendered
from pipeline.models.spec import Kind, MediaSpec, ModelSpec

_WORD = "What?"


class ProcessorTemplate:
    """A processor in a tokenizer's place: its chat template, where it has one, over its tokenizer's words."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self.eos_token: str | None = self._tokenizer.eos_token
        self._template = processor if getattr(processor, "chat_template", None) else self._tokenizer

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """The conversation in the model's own form."""
        return self._template.apply_chat_template(conversation, **options)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer inside of the processor."""
        return self._tokenizer

    def get_vocab(self) -> dict[str, int]:
        """Token → id."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        return vocabulary

    def get_added_vocab(self) -> dict[str, int]:
        """The tokens that are no words of the language: token → id."""
        added: dict[str, int] = self._tokenizer.get_added_vocab()
        return added

    def media_token(self, kind: Kind) -> str | None:
        """What the processor itself looks for, if it says so."""
        token = getattr(self._processor, f"{kind}_token", None) or getattr(
            self._tokenizer, f"{kind}_token", None
        )
        return str(token) if token else None


def with_tokens(spec: ModelSpec, tokenizer: Tokenizer) -> ModelSpec:
    """The spec with the media tokens that its chat template writes, where the spec does not name them.

    A kind for which the template writes nothing is left out.

    Raises:
        ConfigError: the model has no chat template, or one that knows no media.
    """
    if not spec.prompt.parts or all(media.marker for media in spec.media.values()):
        return spec
    found: dict[Kind, MediaSpec] = {}
    for kind, media in spec.media.items():
        token = media.marker or _token(spec, kind, tokenizer)
        if token:
            found[kind] = media.model_copy(update={"token": token})
    if not found:
        raise ConfigError(
            [
                "model.type: the model's chat template writes nothing for an image; "
                "write a spec with its placeholders (docs/models.md) and name it by its path"
            ]
        )
    return spec.model_copy(update={"media": found, "mixed": spec.mixed and len(found) > 1})


def _token(spec: ModelSpec, kind: Kind, tokenizer: Tokenizer) -> str | None:
    from jinja2 import TemplateError

    try:
        none, one = (rendered(spec, tokenizer, _WORD, {kind: count}) for count in (0, 1))
    except (TemplateError, TypeError, KeyError):
        return None  # a template that knows no such part
    except ValueError as error:
        raise ConfigError([f"model.type: the model's chat template cannot be used: {error}"]) from error
    named = tokenizer.media_token(kind) if isinstance(tokenizer, ProcessorTemplate) else None
    if named and one.count(named) == none.count(named) + 1:
        return named
    written = _inserted(none, one)
    # What holds no token of the model's own is the template's way to print what it does not know.
    return written if any(token in written for token in tokenizer.get_added_vocab()) else None


def _inserted(before: str, after: str) -> str:
    """What `after` has in one place more than `before`."""
    start = 0
    while start < len(before) and before[start] == after[start : start + 1]:
        start += 1
    end = len(before) - start
    return after[start : len(after) - end] if before[start:] == after[len(after) - end :] else ""
