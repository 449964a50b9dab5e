"""Out of memory at start is answered by the settings that take it; the messages are vLLM's and torch's own."""

from __future__ import annotations

import pytest

from pipeline.engine.hints import start_hint

ARGUMENTS = {"max_model_len": 32768, "tensor_parallel_size": 2}
NO_MEMORY = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 71.2 GiB).",
    "ValueError: No available memory for the cache blocks.",
    "ValueError: To serve at least one request with the models's max seq len (32768), (7.0 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (2.1 GiB).",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory",
    "ValueError: Available memory on node 0 (17.92/23.59 GiB) on kv cache allocation is less than requested",
]


@pytest.mark.parametrize("reason", NO_MEMORY)
def test_on_a_gpu(reason: str) -> None:
    hint = start_hint(reason, ARGUMENTS, cpu=False)
    assert "lower engine.args.gpu_memory_utilization, engine.args.max_model_len (now 32768)" in hint
    assert "engine.args.max_num_seqs" in hint
    assert "engine.tensor_parallel_size (now 2)" in hint


@pytest.mark.parametrize("reason", NO_MEMORY)
def test_on_a_cpu(reason: str) -> None:
    hint = start_hint(reason, ARGUMENTS, cpu=True)
    assert "lower engine.args.max_model_len (now 32768), engine.args.max_num_seqs" in hint
    assert "VLLM_CPU_KVCACHE_SPACE" in hint
    assert "gpu_memory" not in hint


def test_another_reason_speaks_for_itself() -> None:
    assert start_hint("RuntimeError: Cannot find any model weights with `/m`", ARGUMENTS) == ""
