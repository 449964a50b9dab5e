"""The `framescribe` command: run, plan, retry, models; status, recipes and compact of an output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from pipeline.compact_command import add_compact_command
from pipeline.config_file import load_config
from pipeline.errors import Code, ConfigError, EngineError, OutputTakenError, StorageError
from pipeline.models_command import add_models_command
from pipeline.recipes_command import add_recipes_command
from pipeline.status_command import add_status_command

EXIT_CONFIG = 2
EXIT_ENGINE = 3
EXIT_TAKEN = 4
EXIT_STORAGE = 5


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0, 2 for a wrong configuration, 3 for engines that fail, 4 for an output that another run took over, 5 for
    a store that fails.
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except ConfigError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return EXIT_CONFIG
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ENGINE
    except OutputTakenError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_TAKEN
    except StorageError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_STORAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="framescribe", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _run, "caption what is not captioned yet"),
        ("plan", _plan, "show what a run would do, and everything that is wrong, without an engine"),
    ):
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--config", required=True, help="YAML file, such as conf/caption.yaml")
        sub.add_argument("overrides", nargs="*", metavar="field.name=value", help="in place of the file's")
        sub.set_defaults(command=command)
    _add_retry(commands)
    add_models_command(commands)
    add_status_command(commands)
    add_recipes_command(commands)
    add_compact_command(commands)
    return parser


def _add_retry(commands: Any) -> None:
    text = "ask again what failed, in place; with other settings, as another recipe"
    retry = commands.add_parser("retry", help=text, description=text)
    retry.add_argument("--config", required=True, help="YAML file of the run")
    retry.add_argument("--code", action="append", default=[], help="only rows that failed so; may be repeated")
    retry.add_argument("--from", dest="recipe", help="recipe whose good rows are taken over")
    retry.add_argument("overrides", nargs="*", metavar="field.name=value", help="in place of the file's")
    retry.set_defaults(command=_retry)


def _run(arguments: argparse.Namespace) -> int:
    from pipeline.run import run

    summary = run(load_config(arguments.config, arguments.overrides))
    print("\n".join(summary.lines()))
    return 0


def _retry(arguments: argparse.Namespace) -> int:
    from pipeline.retry import plan_retry
    from pipeline.run import run_plan

    if unknown := [code for code in arguments.code if code not in {*Code}]:
        raise ConfigError([f"--code {unknown[0]}: no such code; docs/results.md lists them"])
    asked = (arguments.config, arguments.overrides, arguments.code, arguments.recipe)
    print("\n".join(run_plan(lambda: plan_retry(*asked)).lines()))
    return 0


def _plan(arguments: argparse.Namespace) -> int:
    from pipeline.plan import make_plan
    from pipeline.preview import first_prompts

    plan = make_plan(load_config(arguments.config, arguments.overrides))
    tasks = len(plan.recipe.tasks)
    print(f"manifest   {plan.manifest.rows:,} items in {len(plan.manifest.files)} file(s), {tasks} task(s)")
    print(f"output     {plan.ledger.folder}")
    print(f"shards     {len(plan.shards):,} of up to {plan.record.shard_rows:,} rows")
    print(f"done       {plan.done_rows:,} items; to do: {plan.work_rows:,} in {plan.batch_count:,} batches")
    print(f"model      {plan.config.model.type}: {plan.model}")
    print(f"recipe     {plan.recipe.id}: sampling {plan.recipe.sampling}")
    for warning in plan.warnings:
        print(f"warning    {warning}")
    for preview in first_prompts(plan):
        print(f"prompt     {preview.id} [{preview.task}]: {preview.error or repr(preview.prompt)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
