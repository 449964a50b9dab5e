"""Results of manifest files that are no more: put aside, hidden, as long as they tell something."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pipeline.results.index import RETIRED, Index, result_files
from pipeline.storage import Storage, join

_SHARD = re.compile(r"^([^/.][^/]*)\.parquet$")
_BATCH = re.compile(r"^\.(?:batches|retries)/([^/]+)/([^/]+)\.parquet$")


@dataclass(frozen=True)
class Move:
    """A file and where it is put."""

    source: str
    target: str


def stale_files(storage: Storage, folder: str, shards: Collection[str]) -> list[Move]:
    """The finished shards and batches of a recipe's folder that belong to none of these shards."""
    moves = []
    for info in storage.find(folder):
        name = info.uri.removeprefix(folder).lstrip("/")
        if (found := _SHARD.match(name)) and not name.startswith("_"):
            shard, kept = found.group(1), found.group(1)
        elif found := _BATCH.match(name):
            shard, kept = found.group(1), f"{found.group(1)}.{found.group(2)}"
        else:
            continue
        if shard not in shards:
            moves.append(Move(info.uri, join(folder, f"{RETIRED}/{kept}.parquet")))
    return moves


def move(storage: Storage, moves: Iterable[Move]) -> None:
    """Move the files; again after a crash does the same."""
    for one in moves:
        storage.put(one.target, storage.read(one.source))
        storage.remove([one.source])


def save_index(storage: Storage, folder: str) -> None:
    """Save the folder's index, and remove retired files whose every answer stands in a current one."""
    index = Index.load(storage, folder)
    retired = [name for name, _ in result_files(storage, folder) if name.startswith(f"{RETIRED}/")]
    redundant = index.redundant(retired)
    index.without(redundant).save(storage)
    storage.remove([join(folder, name) for name in redundant])
