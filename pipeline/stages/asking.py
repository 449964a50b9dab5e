"""Put one question about one item's media to an engine, within a budget of bytes, smaller where it must be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine.base import Answer, Request
from pipeline.engine.budget import Budget
from pipeline.engine.supervisor import EngineCrash, EngineSupervisor
from pipeline.errors import Code, ItemError
from pipeline.media.halve import halved
from pipeline.models.packing import LoadedMedia, pack
from pipeline.models.prompt import PromptBuilder

MOST_HALVINGS = 5
"""To a 32nd of the pixels: what is too long then is so by its words."""


class Refused(ItemError):
    """There is no answer, after `attempts` requests."""

    def __init__(self, error: ItemError, attempts: int) -> None:
        super().__init__(error.code, error.reason)
        self.attempts = attempts


@dataclass
class Asker:
    """Makes requests of items, for one engine.

    Attributes:
        sampling: vLLM SamplingParams fields.
        most_images: of one item.
        budget: of decoded pixels that are in hand at once.
        shrink: whether the media of a prompt that is too long are halved until it fits.
    """

    engine: EngineSupervisor
    builder: PromptBuilder
    sampling: dict[str, Any]
    most_images: int
    budget: Budget
    shrink: bool
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    async def ask(self, uuid: str | None, question: str, media: Sequence[LoadedMedia]) -> tuple[Answer, int]:
        """The answer, and how often the engine was asked.

        Raises:
            Refused: the item cannot be answered.
            EngineError: no engine can be kept alive.
        """
        attempts = 0
        async with self.budget.held(sum(one.pixels.nbytes for one in media)):
            while True:
                try:
                    answer, sent = await self.engine.generate(self._request(uuid, question, media))
                    return answer, attempts + sent
                except ItemError as error:
                    attempts += error.attempts if isinstance(error, EngineCrash) else 1
                    smaller = self._smaller(media) if error.code == Code.PROMPT_TOO_LONG else None
                    if smaller is None or attempts > MOST_HALVINGS:
                        raise Refused(error, attempts) from error
                    media = smaller

    def _request(self, uuid: str | None, question: str, media: Sequence[LoadedMedia]) -> Request:
        prompt = pack(self.builder, question, media, self.most_images)
        return Request(f"{uuid}-{next(self._numbers)}", prompt, self.sampling)

    def _smaller(self, media: Sequence[LoadedMedia]) -> list[LoadedMedia] | None:
        if not self.shrink:
            return None
        found = [halved(one) for one in media]
        if not any(found):
            return None
        return [new or old for new, old in zip(found, media, strict=True)]
