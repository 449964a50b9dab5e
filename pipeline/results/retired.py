"""Results of manifest files that are no more: put aside, hidden, as long as they tell something."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pipeline.results.index import Index, result_files
from pipeline.results.layout import BATCH, DONE_AGAIN, RETIRED, SHARD, name_in
from pipeline.storage import Storage, join


@dataclass(frozen=True)
class Move:
    """A file and where it is put."""

    source: str
    target: str


def stale_files(storage: Storage, folder: str, shards: Collection[str]) -> list[Move]:
    """The finished shards and batches of a recipe's folder that belong to none of these shards."""
    moves = []
    for info in storage.find(folder):
        name = name_in(folder, info.uri)
        if found := SHARD.fullmatch(name):
            shard = kept = found.group(1)
        elif found := BATCH.fullmatch(name) or DONE_AGAIN.fullmatch(name):
            shard, start, stop = found.groups()
            kept = f"{shard}.{start}-{stop}"
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
