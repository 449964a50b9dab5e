"""How busy an engine's GPUs are and what they hold, as NVIDIA's driver tells it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

SECONDS_BETWEEN_SAMPLES = 1.0


class GpuSampler:
    """Samples the GPUs of this process in a thread until it is closed. Where there are none it does nothing.

    `nvml` is the module pynvml, which vLLM's CUDA build brings.
    """

    def __init__(self, nvml: Any, environment: Mapping[str, str] = os.environ) -> None:
        self._nvml = nvml
        self._handles = _handles(nvml, environment)
        self._samples = 0
        self._utilisation = 0.0
        self._memory_peak = 0
        self._closed = threading.Event()
        if self._handles:
            threading.Thread(target=self._run, name="gpu-sampler", daemon=True).start()

    def as_dict(self) -> dict[str, float]:
        """`gpu_utilisation` (mean over GPUs and time, 0 to 1), `gpu_memory_peak` (bytes); or nothing."""
        if not self._samples:
            return {}
        return {
            "gpu_utilisation": self._utilisation / self._samples,
            "gpu_memory_peak": float(self._memory_peak),
        }

    def sample(self) -> None:
        """Look at each GPU once."""
        for handle in self._handles:
            self._utilisation += self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
            used = int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
            self._memory_peak = max(self._memory_peak, used)
            self._samples += 1

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(SECONDS_BETWEEN_SAMPLES):
            try:
                self.sample()
            except self._nvml.NVMLError:
                return  # a GPU that fell off the bus is told of by its engine


def gpu_sampler() -> GpuSampler | None:
    """A sampler of the GPUs that this process may use; None where there is no driver."""
    try:
        import pynvml  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return GpuSampler(pynvml)
    except pynvml.NVMLError:
        return None


def _handles(nvml: Any, environment: Mapping[str, str]) -> list[Any]:
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return [
        nvml.nvmlDeviceGetHandleByIndex(int(one)) if one.isdigit() else nvml.nvmlDeviceGetHandleByUUID(one)
        for one in filter(None, (part.strip() for part in visible.split(",")))
        if one != "-1"
    ]
