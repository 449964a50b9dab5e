"""Duplicate ids: counted over shards and tasks, named, and sampled where there are too many to hold."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.results import duplicates
from pipeline.results.duplicates import find_duplicate_ids
from pipeline.results.ledger import Ledger
from pipeline.storage import Storage

Finish = Callable[[list[list[str]]], Ledger]


@pytest.fixture
def finished(tmp_path: Path) -> Finish:
    """A ledger of two tasks whose finished shards hold these ids."""

    def finish(shards: list[list[str]]) -> Ledger:
        ledger = Ledger(Storage(), str(tmp_path / "recipe=r"), ("caption", "ocr"))
        for number, ids in enumerate(shards):
            rows = [
                {"row": row, "task": task, "id": one} for row, one in enumerate(ids) for task in ledger.tasks
            ]
            file = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), file)
            ledger.storage.put(ledger.shard_uri(f"{number:05d}"), file.getvalue())
        return ledger

    return finish


def test_ids_that_are_there_once_are_no_duplicates(finished: Finish) -> None:
    assert find_duplicate_ids(finished([["a", "b"], ["c"], ["ab"]]), 4) is None
    assert find_duplicate_ids(finished([]), 0) is None


def test_duplicates_are_counted_and_the_first_named(finished: Finish) -> None:
    found = find_duplicate_ids(finished([["x", "a", "a", "b"], ["c", "b", "a"], ["d", "e", "e", "d"]]), 11)
    assert found is not None
    assert (found.items, found.examples, found.estimated) == (5, ("a", "b", "d"), False)
    assert found.text() == "5 items have an id that another has too: 'a', 'b', 'd'"


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_counter(finished: Finish, seed: int) -> None:
    chance = random.Random(seed)
    shards = [[f"k{chance.randint(0, 3000)}" for _ in range(chance.randint(1, 900))] for _ in range(5)]
    counted = Counter(one for shard in shards for one in shard)
    found = find_duplicate_ids(finished(shards), 4500)
    assert found is not None
    assert found.items == sum(count - 1 for count in counted.values())
    repeated = [one for one in counted if counted[one] > 1]
    assert list(found.examples) == repeated[:3]


def test_of_more_than_can_be_held_a_sample_is_looked_at(
    finished: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "MAX_HASHES", 1000)
    ids = [f"k{n % 4000}" for n in range(8000)]
    found = find_duplicate_ids(finished([ids[:5000], ids[5000:]]), 8000)
    assert found is not None
    assert found.estimated
    assert 3000 < found.items < 5000
    assert len(found.examples) == 3
    assert set(found.examples) < set(ids)
    assert found.text().startswith("about ")
