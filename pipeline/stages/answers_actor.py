"""The one process of a run that decides who answers an item, and what the stages hold of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pipeline.results.dedup import Claim, Dedup, Settled, Verdict
from pipeline.results.index import Index
from pipeline.results.ledger import Ledger
from pipeline.results.retired import save_index
from pipeline.stages.ready import OUTCOME


class AnswersActor:
    """`Dedup` over what is durable when it starts, and again if Ray has to start it again.

    Args:
        folders: recipe folders whose answers count, the ledger's own among them if it does.
    """

    def __init__(self, ledger: Ledger, folders: Sequence[str], trust_versions: bool) -> None:
        self._ledger = ledger
        indexes = [Index.load(ledger.storage, folder) for folder in folders]
        self._dedup = Dedup(indexes, trust_versions)
        for table in ledger.open_batches():
            self._dedup.settle(_durable(table.to_pylist()))

    def knows(self) -> tuple[bool, bool]:
        """Whether any answer is known, and any object version."""
        return self._dedup.knows_answers(), self._dedup.knows_media()

    def known_media(self, versions: Sequence[str]) -> list[str | None]:
        """As `Dedup`."""
        return self._dedup.known_media(versions)

    def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        """As `Dedup`."""
        return self._dedup.claim(claims)

    def settle(self, settled: Sequence[Settled]) -> None:
        """As `Dedup`."""
        self._dedup.settle(settled)

    def outcomes(self, uuids: Sequence[str]) -> list[dict[str, Any] | None]:
        """As `Dedup`."""
        return self._dedup.outcomes(uuids)

    def save_index(self) -> None:
        """As `results.retired.save_index`, of the ledger's folder."""
        save_index(self._ledger.storage, self._ledger.folder)


@dataclass(frozen=True)
class RemoteAnswers:
    """`Answers` through the actor's handle, from any process of the run."""

    actor: Any

    @classmethod
    def start(cls, ledger: Ledger, folders: Sequence[str], trust_versions: bool) -> RemoteAnswers:
        """Start the actor on this node, which the run cannot outlive anyway."""
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        remote = ray.remote(AnswersActor).options(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here
        )
        return cls(remote.remote(ledger, list(folders), trust_versions))

    def knows(self) -> tuple[bool, bool]:
        """Whether any answer is known, and any object version."""
        found: tuple[bool, bool] = ray.get(self.actor.knows.remote())
        return found

    def known_media(self, versions: Sequence[str]) -> list[str | None]:
        """As `Answers`."""
        found: list[str | None] = ray.get(self.actor.known_media.remote(versions))
        return found

    def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
        """As `Answers`."""
        found: list[Verdict] = ray.get(self.actor.claim.remote(claims))
        return found

    def settle(self, settled: Sequence[Settled]) -> None:
        """As `Answers`."""
        ray.get(self.actor.settle.remote(settled))

    def outcomes(self, uuids: Sequence[str]) -> list[dict[str, Any] | None]:
        """As `Answers`."""
        found: list[dict[str, Any] | None] = ray.get(self.actor.outcomes.remote(uuids))
        return found

    def save_index(self) -> None:
        """As the actor's."""
        ray.get(self.actor.save_index.remote())

    def close(self) -> None:
        """End the actor."""
        ray.kill(self.actor)


def _durable(rows: Sequence[dict[str, Any]]) -> list[Settled]:
    return [
        Settled(Claim(row["item_uuid"], ""), {name: row[name] for name in OUTCOME})
        for row in rows
        if row["item_uuid"] and row["status"] == "ok"
    ]
