"""What differs between two recipes, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One field. `path` is dotted; a value that is not there is None."""

    path: str
    old: Any
    new: Any


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    """The fields that differ, by path."""
    before, after = dict(_leaves(old, "")), dict(_leaves(new, ""))
    paths = sorted(before.keys() | after.keys())
    return [
        Difference(path, before.get(path), after.get(path))
        for path in paths
        if (path in before, before.get(path)) != (path in after, after.get(path))
    ]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, value
