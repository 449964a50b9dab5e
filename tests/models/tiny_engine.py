"""Asks a tiny model through vLLM's own engine, made from a spec alone."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import RunConfig
from pipeline.engine.arguments import engine_arguments
from pipeline.media.load import MediaLoader
from pipeline.models.packing import pack
from pipeline.models.registry import load_spec
from pipeline.models.spec import Kind
from pipeline.stages.connect import Connect
from pipeline.storage import Storage

Files = list[tuple[Kind, bytes]]

MEDIA_TOKENS = ("<image>", "<video>", "<|image_pad|>", "<|video_pad|>", "<IMG_CONTEXT>")


@dataclass(frozen=True)
class Reply:
    """The prompt as the model got it, and its answer.

    Attributes:
        media_tokens: how often each of `MEDIA_TOKENS` stands in the prompt, without zeros.
        tokens: of the answer; a random model's may be no text at all.
        logprob: the sum over the answer's tokens.
    """

    media_tokens: dict[str, int]
    tokens: list[int]
    logprob: float


@dataclass(frozen=True)
class Session:
    """One engine's replies to its cases, in their order, and the stop tokens that it was given."""

    replies: list[Reply]
    stop_token_ids: list[int]


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
    sampling = SamplingParams(temperature=0, max_tokens=8, logprobs=0, **connection.sampling)
    engine = LLM(**arguments, model=str(model))
    try:
        vocabulary = engine.get_tokenizer().get_vocab()
        outputs = [engine.generate(prompt, sampling, use_tqdm=False)[0] for prompt in prompts]
    finally:
        engine.llm_engine.engine_core.shutdown()
        del engine
        _forget_engine()
    return Session([_reply(output, vocabulary) for output in outputs], sampling.stop_token_ids or [])


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
                "args": {
                    "max_model_len": 2048,
                    "dtype": "float32",
                    "enforce_eager": True,
                    "kv_cache_memory_bytes": 64 * 2**20,
                    "distributed_executor_backend": "uni",
                }
            },
            "output": {"uri": "unused"},
        }
    )


def _reply(output: Any, vocabulary: dict[str, int]) -> Reply:
    prompt = list(output.prompt_token_ids)
    counts = {token: prompt.count(vocabulary[token]) for token in MEDIA_TOKENS if token in vocabulary}
    answer = output.outputs[0]
    return Reply(
        media_tokens={token: count for token, count in counts.items() if count},
        tokens=list(answer.token_ids),
        logprob=answer.cumulative_logprob,
    )


def _forget_engine() -> None:
    from vllm.distributed import cleanup_dist_env_and_memory

    cleanup_dist_env_and_memory()
    gc.collect()
