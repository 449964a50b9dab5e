"""Ids that several items share, found in the results of a run."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.results.ledger import Ledger

MAX_HASHES = 8_000_000
"""At 8 bytes each, and as many to sort them. Of more ids a sample is looked at, chosen by their hashes."""

_EXAMPLES = 3
_THREADS = 16


@dataclass(frozen=True)
class DuplicateIds:
    """`items` are those whose id an item before them has: a count, or from a sample of the ids an estimate.

    `examples` are the first such ids in the results.
    """

    items: int
    examples: tuple[str, ...]
    estimated: bool

    def text(self) -> str:
        """The finding for people."""
        about = "about " if self.estimated else ""
        shown = ", ".join(repr(one[:80]) for one in self.examples)
        return f"{about}{self.items:,} items have an id that another has too: {shown}"


def find_duplicate_ids(ledger: Ledger, items: int) -> DuplicateIds | None:
    """Look through the ids of all finished shards, which hold so many items. None if each is there once.

    Raises StorageError: the store cannot be reached for longer than the budget.
    """
    shards = sorted(ledger.scan().shards)
    every = max(1, -(-items // MAX_HASHES))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda shard: _hashes(_ids(ledger, shard), every), shards))
    hashes = np.concatenate([np.empty(0, np.int64), *found])
    ordered = np.sort(hashes)
    repeats = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeats):
        return None
    first = [int(np.flatnonzero(hashes == value)[0]) for value in _first(hashes, repeats)]
    behind = np.cumsum([len(one) for one in found])
    examples = []
    for place in first:
        shard = int(np.searchsorted(behind, place, side="right"))
        ids = [one for one in _ids(ledger, shards[shard]) if hash(one) % every == 0]
        examples.append(ids[place - (int(behind[shard - 1]) if shard else 0)])
    return DuplicateIds(len(repeats) * every, tuple(examples), every > 1)


def _first(hashes: NDArray[np.int64], repeats: NDArray[np.int64]) -> list[int]:
    """The first few of the hashes that are repeated ones, each once."""
    places = np.flatnonzero(np.isin(hashes, repeats))
    return list(islice(dict.fromkeys(hashes[places].tolist()), _EXAMPLES))


def _hashes(ids: Iterable[str], every: int) -> NDArray[np.int64]:
    """64-bit hashes, the same within this process only, of every so-manieth id."""
    found = np.fromiter(map(hash, ids), np.int64)
    chosen: NDArray[np.int64] = found[found % every == 0]
    return chosen


def _ids(ledger: Ledger, shard: str) -> list[str]:
    """The ids of a shard's items, from as few bytes of its file as they take."""
    uri = ledger.shard_uri(shard)
    with ledger.storage.stopping("read", uri):
        fs, path = ledger.storage.filesystem(uri)
        with fs.open(path, "rb", cache_type="none") as source:
            column = pq.ParquetFile(source).read(columns=["id"])["id"]
    return list(column.to_pylist()[:: len(ledger.tasks)])
