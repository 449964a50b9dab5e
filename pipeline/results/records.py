"""What a recipe's folder says of itself: the recipe in full, its versions, how many rows, past runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pipeline.results.lineage import RECIPE_FILE, read_manifest_record
from pipeline.results.recipe_files import RecipeFiles
from pipeline.storage import Storage


@dataclass(frozen=True)
class PastRun:
    """A run as it was summed up at its end. `started` is its file's stamp; `summary` as in RunSummary."""

    started: str
    summary: dict[str, Any]


@dataclass(frozen=True)
class Lineage:
    """The recipe in full, and the versions of the run that last worked on it."""

    recipe: dict[str, Any]
    versions: dict[str, str]


def read_lineage(storage: Storage, recipe: RecipeFiles) -> Lineage:
    """What `_recipe.json` says; nothing, where there is none yet."""
    if RECIPE_FILE not in recipe.records:
        return Lineage({}, {})
    found = json.loads(storage.read(recipe.records[RECIPE_FILE].uri))
    return Lineage(found["recipe"], found["versions"])


def expected_rows(storage: Storage, recipe: RecipeFiles) -> int | None:
    """All result rows that the manifest makes; None before a run has recorded it."""
    record = read_manifest_record(storage, recipe.folder)
    tasks = read_lineage(storage, recipe).recipe.get("tasks")
    return len(tasks) * sum(rows for _, rows, _ in record.files) if record and tasks else None


def past_runs(storage: Storage, recipe: RecipeFiles, count: int) -> list[PastRun]:
    """The last `count` runs, oldest first."""
    return [
        PastRun(
            file.uri.rpartition("/")[2].removesuffix(".json"), json.loads(storage.read(file.uri))["summary"]
        )
        for file in recipe.runs[-count:]
    ]
