"""Which settings to change when an engine cannot start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.engine.arguments import vllm_version

_NO_MEMORY = re.compile(
    r"out of memory|OutOfMemory|not enough memory|can't allocate|cannot allocate|bad_alloc|MemoryError"
    r"|No available memory|KV cache (?:is|memory)|less than desired GPU memory|Available memory on node"
    r"|insufficient memory",
    re.IGNORECASE,
)
_SETTINGS = ("gpu_memory_utilization", "max_model_len", "max_num_seqs")


def start_hint(reason: str, arguments: Mapping[str, Any], cpu: bool | None = None) -> str:
    """What to do about the reason for which vLLM did not start; empty where the reason says it itself.

    Memory is the only one: vLLM tells how much is lacking, not what in a run's configuration takes it.
    `cpu`: the engine is vLLM's CPU build (default: what is installed).
    """
    if not _NO_MEMORY.search(reason):
        return ""
    on_cpu = vllm_version(cpu=True) is not None if cpu is None else cpu
    names = [name for name in _SETTINGS if not on_cpu or name != "gpu_memory_utilization"]
    now = ", ".join(
        f"engine.args.{name} (now {arguments[name]})" if name in arguments else f"engine.args.{name}"
        for name in names
    )
    if on_cpu:
        return (
            f"; memory: lower {now}, or set engine.args.kv_cache_memory_bytes (or VLLM_CPU_KVCACHE_SPACE, "
            "in GiB) to what this machine can spare"
        )
    gpus = arguments.get("tensor_parallel_size", 1)
    return (
        f"; memory: lower {now}, or spread the model over more GPUs by engine.tensor_parallel_size "
        f"(now {gpus}); where the KV cache alone has too little, a higher gpu_memory_utilization gives it more"
    )
