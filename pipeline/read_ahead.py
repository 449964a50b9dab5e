"""Keeps the read stage from running far ahead: what it has read waits in the driver's memory."""

from __future__ import annotations

from typing import Any

from ray.data import DataContext
from ray.data._internal.execution.backpressure_policy import (
    ENABLED_BACKPRESSURE_POLICIES,
    ENABLED_BACKPRESSURE_POLICIES_CONFIG_KEY,
    BackpressurePolicy,
)

from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read

QUEUED_BATCHES = 256
"""Batches between read and prepare beyond which no further shard is begun."""

READERS = 4
"""Shards that are read at once."""


class ReadAhead(BackpressurePolicy):  # type: ignore[misc]
    """Begins a shard only while few batches wait to be prepared.

    Ray Data bounds what waits by bytes of the object store; batches before they are prepared are a few
    kilobytes of URIs, which Ray keeps in the driver, so a million of them would fit.
    """

    def can_add_input(self, op: Any) -> bool:
        """Whether the operator may begin another task. Called by Ray's scheduling loop."""
        if Read.__name__ not in op.name:
            return True
        return op.num_active_tasks() < READERS and self._queued(op) < QUEUED_BATCHES

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
