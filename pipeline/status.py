"""What is done of an output's recipes, what fails and why, and whether a run is going: from its files alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ConfigError
from pipeline.results.holder import Holder
from pipeline.results.lineage import RECIPE_FILE
from pipeline.results.lock_file import LockFile, watch
from pipeline.results.recipe_files import RecipeFiles, list_recipes
from pipeline.results.records import PastRun, expected_rows, past_runs
from pipeline.results.survey import Counts, retried_rows, survey
from pipeline.storage import Storage, redact

RUNS_SHOWN = 3


@dataclass(frozen=True)
class RecipeStatus:
    """One recipe.

    Attributes:
        rows: all result rows that the manifest makes; None before a run recorded its manifest.
        counts: the durable ones.
        retried: rows that replace failed ones and are not merged yet.
        holder: who has the lock; `running` is whether that process was seen alive.
        runs: the last runs that came to their end, oldest first.
    """

    id: str
    folder: str
    rows: int | None
    counts: Counts
    shards_done: int
    shards_open: int
    retried: int
    holder: Holder | None
    running: bool
    runs: list[PastRun]

    @property
    def pending(self) -> int | None:
        """Rows that are not durable yet."""
        return None if self.rows is None else max(0, self.rows - self.counts.durable)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        failed = [
            {"code": code, "rows": rows, "sample": vars(self.counts.samples[code])}
            for code, rows in self.counts.failed.most_common()
        ]
        return {
            "recipe": self.id,
            "folder": redact(self.folder),
            "running": self.running,
            "lock": vars(self.holder) if self.holder else None,
            "rows": self.rows,
            "durable": self.counts.durable,
            "pending": self.pending,
            "ok": self.counts.ok,
            "waiting": self.counts.waiting,
            "failed": failed,
            "retried": self.retried,
            "shards": {"done": self.shards_done, "open": self.shards_open},
            "runs": [{"started": run.started, **run.summary} for run in self.runs],
        }


def recipes_in(storage: Storage, output: str, recipe: str | None = None) -> list[RecipeFiles]:
    """The recipes of an output, those that were worked on last first; or only the one named.

    Raises:
        ConfigError: there is none, or the store does not let it be read.
    """
    try:
        found = list_recipes(storage, output)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError([f"OUTPUT: {redact(output)} cannot be read: {error}"]) from error
    if not found:
        raise ConfigError(
            [f"OUTPUT: {redact(output)} has no folder recipe=…; name what output.uri was in the run"]
        )
    if recipe is not None:
        ids = ", ".join(one.id for one in found)
        found = [one for one in found if one.id == recipe]
        if not found:
            raise ConfigError([f"--recipe {recipe}: {redact(output)} has {ids}"])
    return sorted(found, key=last_worked_on, reverse=True)


def last_worked_on(recipe: RecipeFiles) -> float:
    """When a run last began to work on it, in seconds, by the store's clock; 0 if the store has none."""
    record = recipe.records.get(RECIPE_FILE)
    return (record.mtime if record else None) or 0.0


def status(storage: Storage, recipe: RecipeFiles) -> RecipeStatus:
    """Look at one recipe. Takes up to the time in which a running driver's lock must have moved.

    Raises:
        OSError, ValueError: as `survey`.
    """
    lock = LockFile(storage, recipe.folder)
    seen = lock.read()
    with ThreadPoolExecutor(1) as pool:
        watched = pool.submit(watch, lock, seen) if seen is not None else None
        counts = survey(storage, recipe)
        now = watched.result() if watched else None
    return RecipeStatus(
        id=recipe.id,
        folder=recipe.folder,
        rows=expected_rows(storage, recipe),
        counts=counts,
        shards_done=len(recipe.shards),
        shards_open=len(recipe.open_shards),
        retried=retried_rows(storage, recipe),
        holder=Holder.of(now) if now is not None else None,
        running=now is not None and now != seen,
        runs=past_runs(storage, recipe, RUNS_SHOWN),
    )
