"""All that changes an answer, in one place: two runs with the same recipe give the same results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.config import RunConfig
from pipeline.engine.arguments import answer_changing
from pipeline.identity import recipe_id
from pipeline.media.load import MediaLoader
from pipeline.models.question import wants_page_text
from pipeline.models.spec import ModelSpec

DEFAULT_SAMPLING = {"temperature": 0.0, "max_tokens": 512}
"""Greedy, so that a re-run repeats itself; vLLM's own default of 16 tokens cuts nearly every caption."""


@dataclass(frozen=True)
class Recipe:
    """The recipe of a run. `answering` is what bears on every task; `tasks` maps names to prompts."""

    answering: dict[str, Any]
    tasks: dict[str, str]

    @property
    def id(self) -> str:
        """Names the folder of its results."""
        return recipe_id(self.as_dict())

    @property
    def sampling(self) -> dict[str, Any]:
        """vLLM SamplingParams fields, without the stop tokens that only the tokenizer can number."""
        sampling: dict[str, Any] = self.answering["sampling"]
        return sampling

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are hashed and stored."""
        return {**self.answering, "tasks": self.tasks}


def make_recipe(
    config: RunConfig, spec: ModelSpec, loader: MediaLoader, model: str, arguments: dict[str, Any]
) -> Recipe:
    """The recipe of a configuration.

    Args:
        model: what identifies the weights (`engine.weights.fingerprint`, or the hub's name).
        arguments: vLLM's engine arguments as they will be used.
    """
    sampling = {**DEFAULT_SAMPLING, **spec.sampling, **config.sampling.model_dump(exclude_none=True)}
    prompt = spec.prompt.model_dump(exclude_defaults=True)
    text = {"page_text": loader.text_chars} if wants_page_text(config.questions.values()) else {}
    adapter = {"lora": spec.lora.model_dump()} if spec.lora else {}
    answering = {
        "engine": config.engine.kind,
        "model": {"weights": model, "revision": arguments.get("revision"), **adapter},
        "prompt": {**prompt, "separator": spec.separator, **text},
        "placeholders": {kind: media.placeholder for kind, media in spec.media.items()},
        "stop": {"tokens": spec.stop_tokens, "token_ids": spec.stop_token_ids},
        "sampling": sampling,
        "media": {kind: loader.settings(kind) for kind in spec.media},
        "engine_args": answer_changing(arguments),
        "accept_truncated": config.output.accept_truncated,
    }
    return Recipe(answering, config.questions)
