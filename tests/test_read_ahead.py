"""The read stage begins a shard only while little of what it has read waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import ray

from pipeline.read_ahead import ReadAhead


class Op:
    """An operator of Ray Data's, as far as the policy looks at it."""

    def __init__(self, name: str, queued: int, behind: Op | None = None, active: int = 0) -> None:
        self.name, self.queued, self.active = name, queued, active
        self.output_dependencies = [behind] if behind else []

    def num_active_tasks(self) -> int:
        return self.active


class Topology:
    """Tells what waits before each operator."""

    def __getitem__(self, op: Op) -> Any:
        return SimpleNamespace(total_enqueued_input_blocks=lambda: op.queued)


def graph(between: int, before_prepare: int, behind: int, active: int = 0) -> Op:
    generate = Op("MapBatches(Generate)", behind)
    prepare = Op("MapBatches(Prepare)", before_prepare, generate)
    return Op("MapBatches(Read)", 0, Op("StreamingRepartition", between, prepare), active)


@pytest.mark.parametrize(
    ("cpus", "read", "may"),
    [
        (2, graph(7, 8, 1000), True),
        (2, graph(8, 8, 0), False),
        (2, graph(0, 0, 0, active=2), False),
        (40, graph(70, 9, 0), True),
        (40, graph(70, 10, 0), False),
        (64, graph(0, 0, 0, active=3), True),
        (64, graph(0, 0, 0, active=4), False),
    ],
)
def test_a_shard_is_begun_only_while_few_batches_wait(
    monkeypatch: pytest.MonkeyPatch, cpus: int, read: Op, may: bool
) -> None:
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": cpus})
    policy = ReadAhead(None, Topology(), None)
    assert policy.can_add_input(read) is may
    assert policy.can_add_input(Op("MapBatches(Prepare)", 10**6, active=10**6))
