"""What one engine's actor tells about itself: how long it waited, what it had in hand, its engine's figures."""

from __future__ import annotations

import time
from typing import Any

from pipeline.engine.figures import EngineFigures
from pipeline.engine.gpu import GpuSampler, gpu_sampler
from pipeline.engine.supervisor import EngineSupervisor


class ReplicaMeter:
    """Measures the time with and without batches, and how many requests were in hand over time.

    It starts with the first batch, when the engine is up.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._figures = EngineFigures()
        self._gpu: GpuSampler | None = None
        self._batches = 0
        self._requests = 0
        self._since: float | None = None
        self._up = self._idle = self._request_seconds = 0.0

    def watch(self, figures: EngineFigures) -> None:
        """An engine is up: its figures, and what its GPUs do, belong to the stats from now on."""
        self._figures = figures
        self._gpu = gpu_sampler()

    def batch(self) -> _Inside:
        """Within it, a batch is in hand."""
        return _Inside(self, batches=1)

    def request(self) -> _Inside:
        """Within it, a request is in hand."""
        return _Inside(self, requests=1)

    def stats(self, engine: EngineSupervisor | None, start_seconds: float) -> dict[str, Any]:
        """Plain numbers that only grow, for the batches' stats; seconds, and request-seconds in hand."""
        self._tick()
        return {
            "name": self._name,
            "start_seconds": start_seconds,
            "restarts": engine.restarts if engine else 0,
            "lost_seconds": engine.lost_seconds if engine else 0.0,
            "up_seconds": self._up,
            "idle_seconds": self._idle,
            "request_seconds": self._request_seconds,
            **self._figures.as_dict(),
            **(self._gpu.as_dict() if self._gpu else {}),
        }

    def change(self, batches: int, requests: int) -> None:
        """So many more (or fewer) are in hand from now on."""
        self._tick()
        self._batches += batches
        self._requests += requests

    def _tick(self) -> None:
        now = time.monotonic()
        passed = now - (self._since or now)
        self._since = now
        self._up += passed
        self._idle += passed if not self._batches else 0.0
        self._request_seconds += passed * self._requests


class _Inside:
    def __init__(self, meter: ReplicaMeter, batches: int = 0, requests: int = 0) -> None:
        self._meter, self._batches, self._requests = meter, batches, requests

    def __enter__(self) -> None:
        self._meter.change(self._batches, self._requests)

    def __exit__(self, *_: object) -> None:
        self._meter.change(-self._batches, -self._requests)
