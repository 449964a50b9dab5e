"""Which GPUs are sampled, and what becomes of the samples, over a driver of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipeline.engine.gpu import GpuSampler

BUSY = {"gpu 0": 0, "gpu 1": 50, "gpu 2": 100, "gpu 3": 0, "GPU-abc": 20}


class Driver:
    """Four GPUs; what a sample says is looked up by handle. Nothing samples by itself within a test."""

    class NVMLError(Exception):
        """As pynvml's."""

    def nvmlDeviceGetCount(self) -> int:
        return 4

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu {index}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(gpu=BUSY[handle])

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(used=1000 + BUSY[handle])


@pytest.mark.parametrize(
    ("visible", "utilisation", "memory"),
    [(None, 0.375, 1100), ("1,2", 0.75, 1100), ("GPU-abc", 0.2, 1020)],
)
def test_the_gpus_that_this_process_may_use(visible: str | None, utilisation: float, memory: int) -> None:
    sampler = GpuSampler(Driver(), {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    sampler.close()
    sampler.sample()
    sampler.sample()
    assert sampler.as_dict() == {"gpu_utilisation": pytest.approx(utilisation), "gpu_memory_peak": memory}


@pytest.mark.parametrize("visible", ["", "-1"])
def test_a_process_without_gpus_tells_nothing(visible: str) -> None:
    sampler = GpuSampler(Driver(), {"CUDA_VISIBLE_DEVICES": visible})
    sampler.sample()
    assert sampler.as_dict() == {}
