"""Words of a manifest or a document that the model's tokenizer would take for its special tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.errors import Code, ItemError
from pipeline.models.spec import ModelSpec

Treatment = Literal["text", "refuse"]

# Tokens that steer a model though its tokenizer does not call them special look like this: <think>, [INST].
_BRACKETED = re.compile(r"(<.*>|\[.*\])", re.DOTALL)
# Tokens may overlap, and only one of two that do is split at once; none overlap as deeply as this.
_MOST_ROUNDS = 16


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens and media placeholders of one model, and what to do with them in others' words.

    Attributes:
        pattern: matches each; None if there is none.
        ids: of those in the vocabulary, but for the unknown token.
        tokenizer: proves that none is left; None: only the placeholders of the spec are known.
        treatment: `text`: they are split by a space behind their first character, so that the model reads
            their letters; `refuse`: the item fails.
    """

    pattern: re.Pattern[str] | None
    ids: frozenset[int]
    tokenizer: Any
    treatment: Treatment

    @classmethod
    def of(cls, spec: ModelSpec, tokenizer: Any = None, treatment: Treatment = "text") -> SpecialTokens:
        """Those of a spec, and of its model's tokenizer (or processor) where there is one."""
        inner = getattr(tokenizer, "tokenizer", tokenizer)
        known = _special(inner) if inner is not None else {}
        markers = [_marker(media.marker) for media in spec.media.values() if media.marker]
        words = [re.escape(token) for token in sorted(known) if len(token) > 1]
        parts = [*markers, *words]
        # A tokenizer without bytes for what it does not know gives the unknown token for it: no injection.
        ids = frozenset(known.values()) - {getattr(inner, "unk_token_id", None)}
        return cls(re.compile("|".join(parts)) if parts else None, ids, inner, treatment)

    def quoted(self, text: str) -> str:
        """The text without any special token.

        Raises:
            ItemError: QUESTION_NOT_ALLOWED, if it has one and they are refused, or one that only appears when
                the tokenizer has normalised the text.
        """
        found = self.pattern.search(text) if self.pattern else None
        if found and self.treatment == "refuse":
            raise _refused(f"{found[0]!r}, which is a special token of the model")
        for _ in range(_MOST_ROUNDS):
            if found is None or self.pattern is None:
                break
            text = self.pattern.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
            found = self.pattern.search(text)
        if found:
            raise _refused("special tokens of the model within one another")
        if self.tokenizer is not None and (hidden := self.ids.intersection(_encoded(self.tokenizer, text))):
            name = self.tokenizer.convert_ids_to_tokens(min(hidden))
            raise _refused(f"a spelling of {name!r}, which is a special token of the model")
        return text


def _refused(what: str) -> ItemError:
    why = f"the question (or the text of the page) has {what}: mend it"
    return ItemError(Code.QUESTION_NOT_ALLOWED, f"{why}, or see manifest.special_tokens")


def _marker(marker: str) -> str:
    return re.escape(marker).replace(re.escape("{n}"), r"\d+")


def _special(tokenizer: Any) -> dict[str, int]:
    """Token → id, of all that a tokenizer finds in plain text without being asked to."""
    declared: dict[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
    special = {id for id, token in declared.items() if token.special}
    added: dict[str, int] = tokenizer.get_added_vocab()
    found = {token: id for token, id in added.items() if id in special or _BRACKETED.fullmatch(token)}
    named: Iterable[str] = tokenizer.all_special_tokens
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    found |= {token: vocabulary[token] for token in named if token in vocabulary}
    return found


def _encoded(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids
