"""What an engine did, in numbers that only grow: tokens, queues, cache hits, and when it last moved."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class EngineFigures:
    """Counted over all engines that one replica had, one after another.

    Attributes:
        steps: of the engine, each of which computes a token (or part of a prompt) for many requests.
        running, waiting: requests that were computed and that waited for room, added up over the steps.
        preemptions: requests that lost their cache to others and began again.
        prefix_queries, prefix_hits: tokens of prompts, and those whose cache another request had left.
        media_queries, media_hits: media, and those that the processor knew by their UUID.
        kv_cache_peak: the largest part of the KV cache that was in use, 0 to 1.
        last_step: when it last moved, by `time.monotonic`.
    """

    steps: int = 0
    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    media_queries: int = 0
    media_hits: int = 0
    kv_cache_peak: float = 0.0
    last_step: float = 0.0

    def moved(self) -> None:
        """The engine gave a sign of life."""
        self.last_step = time.monotonic()

    def as_dict(self) -> dict[str, float]:
        """The counts as plain numbers, without the time."""
        return {name: value for name, value in vars(self).items() if name != "last_step"}
