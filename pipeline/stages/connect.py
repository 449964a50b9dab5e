"""Bring up an engine on the node of its actor: model files, tokenizer, prompts, arguments."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ray

from pipeline.engine.arguments import vllm_version
from pipeline.engine.base import Engine
from pipeline.engine.echo import EchoEngine
from pipeline.engine.figures import EngineFigures
from pipeline.engine.weights import locate
from pipeline.errors import ConfigError, EngineError
from pipeline.models.chat import ProcessorTemplate, with_tokens
from pipeline.models.prompt import PromptBuilder, Tokenizer, stop_token_ids
from pipeline.models.resolved import lora_requests
from pipeline.models.spec import ModelSpec
from pipeline.models.special_tokens import SpecialTokens, Treatment
from pipeline.stages.generate import StartedEngine
from pipeline.storage import Storage

MOST_RENDER_WORKERS = 8
"""So many fed the smallest model that was measured (`benchmarks/README.md`), at 0.7 of a core each."""

TENSOR_BYTES = 4
"""Of a rendered tensor for each byte of decoded pixels: bfloat16, and Qwen's has each picture twice."""


@dataclass(frozen=True)
class Connect:
    """What an actor needs to find its model and start its engine.

    `model` as configured and `absolute` as the driver resolved it (`engine.weights.locate`); `arguments`
    are vLLM's but for `model`; `special_tokens` is what those in the items' own words are.
    """

    kind: str
    spec: ModelSpec
    storage: Storage
    model: str
    absolute: str
    arguments: dict[str, Any]
    sampling: dict[str, Any]
    environment: dict[str, str]
    render_workers: int | None = None
    pixels_in_flight: int = 4 * 2**30
    special_tokens: Treatment = "text"

    def __call__(self) -> StartedEngine:
        """Find the model, load its tokenizer if its prompts need it, and tell how to start an engine."""
        if os.environ.get("OMP_NUM_THREADS") == "1":
            # Set by Ray for workers that share a node; it would render images on one thread.
            del os.environ["OMP_NUM_THREADS"]
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        chat = self.spec.prompt.chat is not None
        if self.kind == "echo":
            return StartedEngine(EchoEngine, self._builder(self._located() if chat else None), {})
        model = self._located()
        builder = self._builder(model)
        stops = stop_token_ids(self.spec, builder.tokenizer) if builder.tokenizer else self.spec.stop_token_ids
        sampling = {**({"stop_token_ids": stops} if stops else {}), **self.sampling}
        figures = EngineFigures()
        return StartedEngine(lambda: self._start(model, figures), builder, sampling, figures)

    def _builder(self, model: str | None) -> PromptBuilder:
        try:
            return prompt_builder(self.spec, model, self.arguments, self.special_tokens)
        except ConfigError as error:
            raise EngineError(str(error)) from error
        except (ValueError, ImportError) as error:
            raise EngineError(f"the tokenizer of {model} cannot be loaded: {error}") from error

    def _located(self) -> str:
        model = locate(self.storage, self.model, self.absolute)
        if self.kind == "vllm" and self.spec.lora:
            # The adapter's path is in the model's files, so they must be in a folder.
            return _snapshot(model, self.arguments.get("revision"))
        return model

    def _render_workers(self, resources: Mapping[str, float]) -> int:
        if self.render_workers is not None:
            return self.render_workers
        if vllm_version(cpu=True) is not None:
            return 0
        return fitting_render_workers(resources, self.arguments["tensor_parallel_size"])

    def _start(self, model: str, figures: EngineFigures) -> Engine:
        from pipeline.engine.handover import can_hand_over, shared_memory
        from pipeline.engine.vllm import VllmEngine

        loras = lora_requests(self.spec, model)
        arguments = {**self.arguments, "model": model}
        resources = _of_this_node()
        room = fitting_files(resources, self.arguments["tensor_parallel_size"], shared_memory())
        return VllmEngine(
            arguments,
            self._render_workers(resources),
            loras[0] if loras else None,
            figures,
            by_file=can_hand_over(arguments) and room >= TENSOR_BYTES * self.pixels_in_flight,
        )


def _of_this_node() -> Mapping[str, float]:
    if not ray.is_initialized():
        return {}
    here = ray.get_runtime_context().get_node_id()
    return next(node["Resources"] for node in ray.nodes() if node["NodeID"] == here)


def _engines_of(resources: Mapping[str, float], tensor_parallel_size: int) -> float:
    return max(1, resources.get("GPU", 1) // tensor_parallel_size)


def fitting_render_workers(resources: Mapping[str, float], tensor_parallel_size: int) -> int:
    """How many each engine of a node with these (CPU, GPU) gets: half of its share of the cores."""
    cores = resources.get("CPU", 0) / _engines_of(resources, tensor_parallel_size)
    return min(MOST_RENDER_WORKERS, int(cores / 2))


def fitting_files(resources: Mapping[str, float], tensor_parallel_size: int, shared_memory: float) -> float:
    """How many bytes of files in shared memory each engine of such a node may have, beside Ray's objects."""
    free = shared_memory - resources.get("object_store_memory", 0)
    return free / _engines_of(resources, tensor_parallel_size)


def prompt_builder(
    spec: ModelSpec, model: str | None, arguments: dict[str, Any], special_tokens: Treatment = "text"
) -> PromptBuilder:
    """What writes the prompts of the model in `model`; None: without its tokenizer, and knowing of its special
    tokens only the placeholders of media.

    Raises:
        ConfigError: the prompts are to be written by a chat template that the model does not have.
    """
    if model is None:
        return PromptBuilder(spec, special=SpecialTokens.of(spec, None, special_tokens))
    tokenizer = load_tokenizer(model, arguments, spec.prompt.processor)
    spec = with_tokens(spec, tokenizer)
    return PromptBuilder(spec, tokenizer, SpecialTokens.of(spec, tokenizer, special_tokens))


def load_tokenizer(model: str, arguments: dict[str, Any], processor: bool = False) -> Tokenizer:
    """The model's own tokenizer or processor, with the repository's code only where the run grants it."""
    with contextlib.suppress(ImportError):
        # Before transformers, which looks for torchaudio once: a CPU torch may hide it (engine.cpu_torch).
        import torch  # noqa: F401
    from transformers import AutoProcessor, AutoTokenizer

    loader = AutoProcessor if processor else AutoTokenizer
    loaded = loader.from_pretrained(
        model, revision=arguments.get("revision"), trust_remote_code=arguments["trust_remote_code"]
    )
    return ProcessorTemplate(loaded) if processor else cast(Tokenizer, loaded)


def _snapshot(model: str, revision: str | None) -> str:
    """The folder with a model's files: itself, or a hub repository's in the hub's own cache."""
    if Path(model).is_dir():
        return model
    from huggingface_hub import snapshot_download

    return str(snapshot_download(model, revision=revision))
