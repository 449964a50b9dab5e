"""`framescribe status OUTPUT`: what is done, what fails and why, and whether a run is going."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from pipeline.output_arguments import add_output_command, output_of
from pipeline.status import RecipeStatus, recipes_in, status
from pipeline.storage import redact


def add_status_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    text = "show what of an output is done, what fails and why, also while a run is going"
    parser = add_output_command(commands, "status", text)
    parser.add_argument("--recipe", help="only this one; default: all, the last one first")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=show_status)


def show_status(arguments: argparse.Namespace) -> int:
    """Prints the status of each recipe.

    Raises:
        ConfigError: nothing is there, or it cannot be read.
    """
    storage, output = output_of(arguments)
    found = recipes_in(storage, output, arguments.recipe)
    shown = [status(storage, recipe) for recipe in found]
    if arguments.json:
        print(json.dumps([one.as_dict() for one in shown], indent=1, ensure_ascii=False))
    else:
        print("\n\n".join("\n".join(_lines(one)) for one in shown))
    return 0


def _lines(one: RecipeStatus) -> Iterator[str]:
    counts = one.counts
    yield redact(one.folder)
    yield f"  run        {_run(one)}"
    pending = "" if one.pending is None else f" of {one.rows:,}; {one.pending:,} pending"
    yield f"  rows       {counts.durable:,} durable{pending}"
    waiting = f", {counts.waiting:,} waiting for an equal item's answer" if counts.waiting else ""
    retried = f"; {one.retried:,} retried rows not merged yet" if one.retried else ""
    yield f"             {counts.ok:,} ok, {counts.failed.total():,} failed{waiting}{retried}"
    yield f"  shards     {one.shards_done:,} done, {one.shards_open:,} begun"
    for code, rows in counts.failed.most_common():
        sample = counts.samples[code]
        yield f"  failed     {rows:,} {code}, such as {sample.id!r}: {_short(sample.reason)}"
    for run in one.runs:
        yield f"  {run.started}  {_summed_up(run.summary)}"


def _run(one: RecipeStatus) -> str:
    if one.running:
        return f"going: {one.holder or 'unknown'}"
    if one.holder is not None:
        return f"died: {one.holder}; the same command goes on"
    return "none is going"


def _summed_up(summary: dict[str, Any]) -> str:
    rate = summary.get("rows_per_second")
    speed = f", {rate:,.1f} rows/s" if rate else ""
    failed = sum(summary["failed"].values())
    return f"{summary['ok']:,} ok, {failed:,} failed in {summary['seconds']:,.1f} s{speed}"


def _short(reason: str, most: int = 160) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
