"""How a command about an output is told where it is, and how its store is reached."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pipeline.config_file import load_storage
from pipeline.errors import ConfigError
from pipeline.storage import Storage, redact, scheme_of


def add_output_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """Adds a command that takes `OUTPUT` and, where the environment does not tell, how to reach its store."""
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("output", metavar="OUTPUT", help="the output.uri of the runs")
    parser.add_argument("--config", help="a run's YAML file, whose storage settings are used")
    parser.add_argument(
        "overrides", nargs="*", metavar="storage.s3.field=value", help="how the store is reached"
    )
    return parser


def output_of(arguments: argparse.Namespace) -> tuple[Storage, str]:
    """The storage to use, and the output's absolute URI.

    Raises:
        ConfigError: faulty settings, or nothing is there.
    """
    storage = Storage(load_storage(arguments.config, arguments.overrides))
    output = arguments.output.rstrip("/")
    if scheme_of(output) == "file":
        output = os.path.abspath(os.path.expanduser(output.removeprefix("file://")))
    if not _answered(output, storage):
        raise ConfigError([f"OUTPUT: there is no folder {redact(output)}"])
    return storage, output


def _answered(output: str, storage: Storage) -> Any:
    try:
        return storage.is_folder(output)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error) or type(error).__name__
        raise ConfigError([f"OUTPUT: {redact(output)} cannot be read: {reason}"]) from error
