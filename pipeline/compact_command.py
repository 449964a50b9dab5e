"""`framescribe compact OUTPUT`: a finished recipe's small files copied into few large ones beside them."""

from __future__ import annotations

import argparse

from pipeline.errors import ConfigError
from pipeline.output_arguments import add_output_command, output_of
from pipeline.results.compact import compact, sweep
from pipeline.results.lock import Lock
from pipeline.results.recipe_files import RecipeFiles
from pipeline.status import recipes_in
from pipeline.storage import Storage, redact


def add_compact_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    text = "copy a finished recipe's many small files into few large ones, for readers"
    parser = add_output_command(commands, "compact", text)
    parser.add_argument("--recipe", help="which; needed if the output has several")
    parser.add_argument("--target-mb", type=_positive, default=256.0, help="size of a file (default 256)")
    parser.add_argument(
        "--keep-days", type=_positive, default=7.0,
        help="how long an older compaction stays once a newer one replaced it (default 7)",
    )  # fmt: skip
    parser.set_defaults(command=run_compact)


def run_compact(arguments: argparse.Namespace) -> int:
    """Compacts, sweeps what is old, and prints the folder to read from.

    Raises:
        ConfigError: no such recipe, it is not finished, or a run is going.
    """
    storage, output = output_of(arguments)
    recipe = _one(storage, output, arguments.recipe)
    with Lock(storage, recipe.folder) as lock:
        recipe = _one(storage, output, recipe.id)  # as it is under the lock
        made = compact(storage, output, recipe, int(arguments.target_mb * 2**20), lock.check)
        removed = sweep(storage, output, recipe.id, arguments.keep_days)
    shards = f"{made.rows:,} rows of {len(recipe.shards):,} shards in {made.parts:,} files"
    print(shards if made.is_new else f"{shards}, as before")
    for folder in removed:
        print(f"removed    {redact(folder)}")
    print(f"read from  {redact(made.folder)}/*.parquet")
    return 0


def _one(storage: Storage, output: str, recipe: str | None) -> RecipeFiles:
    found = recipes_in(storage, output, recipe)
    if len(found) > 1:
        ids = ", ".join(one.id for one in found)
        raise ConfigError([f"--recipe: {redact(output)} has several; name one of {ids}"])
    return found[0]


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value
