"""Bring up an engine on the node of its actor: model files, tokenizer, prompts, arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from pipeline.engine.base import Engine
from pipeline.engine.echo import EchoEngine
from pipeline.engine.weights import locate
from pipeline.models.prompt import PromptBuilder, Tokenizer, stop_token_ids
from pipeline.models.spec import ModelSpec
from pipeline.stages.generate import StartedEngine
from pipeline.storage import Storage


@dataclass(frozen=True)
class Connect:
    """What an actor needs to find its model and start its engine.

    `model` as configured and `absolute` as the driver resolved it (`engine.weights.locate`); `arguments`
    are vLLM's but for `model`.
    """

    kind: str
    spec: ModelSpec
    storage: Storage
    model: str
    absolute: str
    arguments: dict[str, Any]
    sampling: dict[str, Any]
    environment: dict[str, str]

    def __call__(self) -> StartedEngine:
        """Find the model, load its tokenizer if its prompts need it, and tell how to start an engine."""
        if os.environ.get("OMP_NUM_THREADS") == "1":
            # Set by Ray for workers that share a node; it would render images on one thread.
            del os.environ["OMP_NUM_THREADS"]
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        if self.kind == "echo":
            tokenizer = None
            if self.spec.prompt.chat is not None:
                tokenizer = load_tokenizer(self._located(), self.arguments)
            return StartedEngine(EchoEngine, PromptBuilder(self.spec, tokenizer), {})
        model = self._located()
        needed = self.spec.prompt.chat is not None or self.spec.stop_tokens
        tokenizer = load_tokenizer(model, self.arguments) if needed else None
        stops = stop_token_ids(self.spec, tokenizer) if tokenizer else self.spec.stop_token_ids
        sampling = {**({"stop_token_ids": stops} if stops else {}), **self.sampling}
        return StartedEngine(lambda: self._start(model), PromptBuilder(self.spec, tokenizer), sampling)

    def _located(self) -> str:
        return locate(self.storage, self.model, self.absolute)

    def _start(self, model: str) -> Engine:
        from pipeline.engine.vllm import VllmEngine

        return VllmEngine({**self.arguments, "model": model})


def load_tokenizer(model: str, arguments: dict[str, Any]) -> Tokenizer:
    """The model's own tokenizer, with the repository's code only where the run grants it."""
    from transformers import AutoTokenizer

    tokenizer: Tokenizer = AutoTokenizer.from_pretrained(
        model, revision=arguments.get("revision"), trust_remote_code=arguments["trust_remote_code"]
    )
    return tokenizer
