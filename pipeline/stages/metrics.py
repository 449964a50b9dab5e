"""An engine's figures as metrics of Ray, which its nodes export to Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

GAUGES = {
    "start_seconds": "seconds from the actor's start to its first answer",
    "up_seconds": "seconds since the first batch came",
    "idle_seconds": "of these, without a batch in hand",
    "lost_seconds": "of these, spent on engines that died",
    "restarts": "engines that were started in place of dead ones",
    "request_seconds": "requests in hand, added up over seconds",
    "steps": "steps of the engine",
    "running": "requests computed, added up over steps",
    "waiting": "requests waiting for room, added up over steps",
    "prompt_tokens": "tokens of prompts",
    "output_tokens": "tokens of answers",
    "preemptions": "requests that lost their cache to others",
    "prefix_queries": "tokens looked up in the prefix cache",
    "prefix_hits": "tokens found in the prefix cache",
    "media_queries": "media looked up in the processor's cache",
    "media_hits": "media found in the processor's cache",
    "kv_cache_peak": "largest part of the KV cache in use",
    "gpu_utilisation": "mean utilisation of the GPUs, 0 to 1",
    "gpu_memory_peak": "most bytes in use on a GPU",
}


class ReplicaMetrics:
    """One gauge `framescribe_engine_<name>` for each figure, with the replica's name as its tag.

    All but the last three only grow: rates are Prometheus's to make.
    """

    def __init__(self, replica: str) -> None:
        from ray.util.metrics import Gauge

        self._gauges: dict[str, Any] = {}
        for name, description in GAUGES.items():
            gauge = Gauge(f"framescribe_engine_{name}", description, tag_keys=("replica",))
            gauge.set_default_tags({"replica": replica})
            self._gauges[name] = gauge

    def show(self, stats: Mapping[str, Any]) -> None:
        """Set the gauges to a replica's stats (`ReplicaMeter.stats`)."""
        for name, gauge in self._gauges.items():
            if name in stats:
                gauge.set(stats[name])


def replica_metrics(replica: str) -> ReplicaMetrics | None:
    """The metrics of an actor; None outside of Ray."""
    return ReplicaMetrics(replica) if ray.is_initialized() else None
