"""How many batches an engine's actor has in hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.config import EngineConfig
from pipeline.graph import _pool


@pytest.mark.parametrize(
    ("replicas", "batches", "in_hand", "queued"),
    [
        (1, 1000, 40, 40),
        (2, 63, 32, 32),  # the replica that is up first leaves the other half
        ({"min": 1, "max": 8}, 63, 40, 80),  # Ray Data starts another actor for what is queued beyond
        ({"min": 2, "max": 4}, 3, 2, 4),
        (1, 0, 1, 1),
    ],
)
def test_an_actor_has_no_more_in_hand_than_its_share(
    replicas: Any, batches: int, in_hand: int, queued: int
) -> None:
    engine = EngineConfig(replicas=replicas, batches_in_flight=40)
    plan = SimpleNamespace(config=SimpleNamespace(engine=engine))
    pool = _pool(cast(Any, plan), batches)
    assert pool.max_concurrent_calls_per_actor == in_hand
    assert pool.max_tasks_in_flight_per_actor == queued
