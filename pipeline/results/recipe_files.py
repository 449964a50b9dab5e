"""The files of an output, told apart by their names: which recipe, and what of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipeline.results.layout import BATCH, BATCHES, DONE_AGAIN, SHARD, name_in
from pipeline.storage import FileInfo, Storage, join

_RECIPE = re.compile(r"recipe=([^/]+)/(.+)")


@dataclass(frozen=True)
class RecipeFiles:
    """The files in `OUTPUT/recipe=<id>/` when it was listed.

    Attributes:
        shards: finished shards by name.
        batches: durable batches of shards that are not finished, by shard, in the order of their first rows.
        retries: rows that replace a shard's and are not merged into it yet.
        runs: the summaries of past runs, oldest first.
        records: the other files that describe it (`_recipe.json`, …), by name.
    """

    id: str
    folder: str
    shards: dict[str, FileInfo] = field(default_factory=dict)
    batches: dict[str, list[FileInfo]] = field(default_factory=dict)
    retries: list[FileInfo] = field(default_factory=list)
    runs: list[FileInfo] = field(default_factory=list)
    records: dict[str, FileInfo] = field(default_factory=dict)

    @property
    def open_shards(self) -> dict[str, list[FileInfo]]:
        """Shards that were begun and are not finished, with their batches."""
        return {name: files for name, files in self.batches.items() if name not in self.shards}


def list_recipes(storage: Storage, output: str) -> list[RecipeFiles]:
    """The recipes of an output by name, with one listing of the store."""
    recipes: dict[str, RecipeFiles] = {}
    for file in storage.find(output):
        if found := _RECIPE.fullmatch(file.uri.removeprefix(output).lstrip("/")):
            name, path = found.groups()
            recipe = recipes.setdefault(name, RecipeFiles(name, join(output, f"recipe={name}")))
            _place(recipe, path, file)
    for recipe in recipes.values():
        recipe.runs.sort(key=lambda file: file.uri)
    return list(recipes.values())


def batch_start(file: FileInfo) -> int:
    """The first manifest row of a batch's range."""
    return int(file.uri.rpartition("/")[2].partition("-")[0])


def batch_stop(file: FileInfo) -> int:
    """The row behind a batch's range."""
    return int(file.uri.rpartition("-")[2].removesuffix(".parquet"))


def shard_files(storage: Storage, folder: str, shard: str) -> list[FileInfo]:
    """What a shard consists of at this moment: its file, else its batches."""
    try:
        return [storage.info(join(folder, f"{shard}.parquet"))]
    except FileNotFoundError:
        files = storage.find(join(folder, f"{BATCHES}/{shard}"))
        return [file for file in files if BATCH.fullmatch(name_in(folder, file.uri))]


def _place(recipe: RecipeFiles, path: str, file: FileInfo) -> None:
    if found := BATCH.fullmatch(path):
        recipe.batches.setdefault(found.group(1), []).append(file)
    elif DONE_AGAIN.fullmatch(path):
        recipe.retries.append(file)
    elif found := SHARD.fullmatch(path):
        recipe.shards[found.group(1)] = file
    elif path.startswith("_runs/") and path.endswith(".json"):
        recipe.runs.append(file)
    elif "/" not in path:
        recipe.records[path] = file
