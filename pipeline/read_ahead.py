"""Keeps the read stage from running far ahead: what it has read waits in the driver's memory."""

from __future__ import annotations

from typing import Any

import ray
from ray.data import DataContext
from ray.data._internal.execution.backpressure_policy import (
    ENABLED_BACKPRESSURE_POLICIES,
    ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY,
    BackpressurePolicy,
)

from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read

QUEUED_PER_CPU = 2
"""Batches between read and prepare, for each CPU of the cluster, beyond which no further shard is begun."""

CPUS_PER_READER = 16
"""So many CPUs prepare no more than one shard's reader reads; two shards are read at once in any case."""


class ReadAhead(BackpressurePolicy):  # type: ignore[misc]
    """Begins a shard only while few batches wait to be prepared.

    Ray Data bounds what waits by bytes of the object store; batches before they are prepared are a few
    kilobytes of URIs, which Ray keeps in the driver, so a million of them would fit.
    """

    def __init__(self, *of_the_graph: Any) -> None:
        super().__init__(*of_the_graph)
        cpus = ray.cluster_resources().get("CPU", 1)
        self._most_queued = max(16, QUEUED_PER_CPU * cpus)
        self._most_readers = max(2, cpus / CPUS_PER_READER)

    def can_add_input(self, op: Any) -> bool:
        """Whether the operator may begin another task. Called by Ray's scheduling loop."""
        if Read.__name__ not in op.name:
            return True
        return bool(op.num_active_tasks() < self._most_readers and self._queued(op) < self._most_queued)

    def _queued(self, op: Any) -> int:
        waiting = 0
        while op.output_dependencies:
            (op,) = op.output_dependencies
            waiting += self._topology[op].total_enqueued_input_blocks()
            if Prepare.__name__ in op.name:
                break
        return waiting


def limit_read_ahead(context: DataContext) -> None:
    """Let the policy take part in the scheduling of the graphs that are built under this context."""
    policies = [*ENABLED_BACKPRESSURE_POLICIES, ReadAhead]
    context.set_config(ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY, policies)
