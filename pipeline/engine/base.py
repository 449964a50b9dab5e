"""What every engine does: take a request, give an answer, or say whose fault it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Request:
    """One question to an engine.

    Attributes:
        prompt: as packed by `models.packing.pack`.
        sampling: vLLM SamplingParams fields.
    """

    id: str
    prompt: dict[str, Any]
    sampling: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back. `finish_reason` as vLLM names it: stop, length, abort, error, repetition."""

    text: str
    finish_reason: str
    prompt_tokens: int
    output_tokens: int


class Engine(Protocol):
    """Answers many requests at once. Built ready to answer; building it raises EngineError if it cannot."""

    async def generate(self, request: Request) -> Answer:
        """Answer one request.

        Raises:
            ItemError: this request cannot be answered; others are not touched.
            EngineError: the engine is dead; every request in flight gets this.
        """

    def close(self) -> None:
        """Free what it holds; no request may follow."""
