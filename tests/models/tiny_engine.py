"""Asks a tiny model through vLLM's own engine, made from a spec alone."""

from __future__ import annotations

import gc
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import RunConfig
from pipeline.engine.arguments import engine_arguments
from pipeline.media.load import MediaLoader
from pipeline.models.packing import pack
from pipeline.models.registry import load_spec
from pipeline.models.resolved import lora_requests
from pipeline.models.spec import Kind
from pipeline.stages.connect import Connect
from pipeline.storage import Storage

Files = list[tuple[Kind, bytes]]


@dataclass(frozen=True)
class Reply:
    """The prompt as the model got it, and its answer.

    Attributes:
        special_tokens: how often each special token stands in the prompt, without zeros.
        tokens: of the answer; a random model's may be no text at all.
        logprob: the sum over the answer's tokens.
    """

    special_tokens: dict[str, int]
    tokens: list[int]
    logprob: float


@dataclass(frozen=True)
class Session:
    """One engine's replies to its cases, in their order.

    Attributes:
        stop_token_ids: that it was given.
        needs_metadata: whether vLLM refuses videos of this model without.
    """

    replies: list[Reply]
    stop_token_ids: list[int]
    needs_metadata: bool


def ask(spec_name: str, model: Path, question: str, cases: list[Files]) -> Session:
    """Start an engine for a spec on the model in a folder, ask about the files of each case, and stop it.

    Meant for a process that runs nothing else: vLLM's engine lives in it and reads its environment.
    """
    os.environ |= {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        # More threads than free cores make a tiny model slower by far.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    gc.freeze()  # vLLM collects garbage nine times an engine, each time over the million objects of its imports
    config, spec = _run_config(spec_name, model), load_spec(spec_name)
    arguments = engine_arguments(config, spec, frozenset(spec.media))
    connection = Connect("vllm", spec, Storage(), str(model), str(model), arguments, {}, {})()
    loader = MediaLoader.of(config.media, spec)
    prompts: list[Any] = [
        pack(
            connection.builder,
            question,
            [loader.load(kind, data)[1] for kind, data in files],
            config.media.max_per_item,
        )
        for files in cases
    ]
    fields = {"max_tokens": 8, **spec.sampling, **connection.sampling, "temperature": 0, "logprobs": 0}
    sampling = SamplingParams(**fields)
    loras = [LoRARequest(**fields) for fields in lora_requests(spec, str(model))]
    arguments["dtype"] = json.loads((model / "config.json").read_text()).get("dtype") or "float32"
    if not any(model.glob("*.safetensors")):
        arguments["load_format"] = "dummy"
        _random_weights()
    engine = LLM(**arguments, model=str(model))
    try:
        tokenizer = engine.get_tokenizer()
        special = {token: tokenizer.convert_tokens_to_ids(token) for token in tokenizer.all_special_tokens}
        needs = bool(_data_parser(engine).video_needs_metadata)
        outputs = [
            engine.generate(prompt, sampling, use_tqdm=False, lora_request=loras or None)[0]
            for prompt in prompts
        ]
    finally:
        engine.llm_engine.engine_core.shutdown()
        del engine
        _forget_engine()
    return Session([_reply(output, special) for output in outputs], sampling.stop_token_ids or [], needs)


def _run_config(spec_name: str, model: Path) -> RunConfig:
    # Besides the spec there is only what a machine without a GPU needs.
    return RunConfig.model_validate(
        {
            "manifest": {"uri": "unused", "columns": {"images": "images"}},
            "model": {
                "type": spec_name,
                "path": str(model),
                "trust_remote_code": load_spec(spec_name).trust_remote_code,
            },
            "prompt": "unused",
            "media": {"max_per_item": 2, "video": {"num_frames": 8}},
            "engine": {
                "tensor_parallel_size": 1,
                "args": {
                    "max_model_len": 2048,
                    "dtype": "float32",
                    "enforce_eager": True,
                    "kv_cache_memory_bytes": 64 * 2**20,
                    "distributed_executor_backend": "uni",
                },
            },
            "output": {"uri": "unused"},
        }
    )


def _reply(output: Any, special: dict[str, int]) -> Reply:
    prompt = list(output.prompt_token_ids)
    counts = {token: prompt.count(number) for token, number in special.items()}
    answer = output.outputs[0]
    return Reply(
        special_tokens={token: count for token, count in counts.items() if count},
        tokens=list(answer.token_ids),
        logprob=answer.cumulative_logprob,
    )


def _data_parser(engine: Any) -> Any:
    from vllm.multimodal import MULTIMODAL_REGISTRY

    return MULTIMODAL_REGISTRY.create_processor(engine.llm_engine.model_config).info.get_data_parser()


def _random_weights() -> None:
    """Make vLLM's made-up weights large enough that pixels show in the answers (its own are +-0.001)."""
    import torch
    from vllm.model_executor.model_loader import dummy_loader

    numbers = itertools.count()

    def fill(tensor: Any) -> None:
        if torch.is_floating_point(tensor):
            chance = torch.Generator().manual_seed(next(numbers))
            scale = 0.3 if tensor.ndim < 2 else tensor.shape[-1] ** -0.5
            noise = torch.randn(tensor.shape, generator=chance, dtype=torch.float32) * scale
            tensor.data.copy_(noise + (1.0 if tensor.ndim < 2 else 0.0))

    dummy_loader.initialize_single_dummy_weight = fill


def _forget_engine() -> None:
    from vllm.distributed import cleanup_dist_env_and_memory

    cleanup_dist_env_and_memory()
    gc.collect()
