"""From a YAML file, `${NAME}` variables and `a.b=value` overrides to a checked RunConfig."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from pipeline.config import RunConfig, StorageConfig
from pipeline.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_M = TypeVar("_M", bound=BaseModel)
_SECRETS = ("access_key_id", "secret_access_key", "session_token")


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration and how it was written: `written` keeps `${NAME}` unexpanded and masks secrets."""

    run: RunConfig
    written: dict[str, Any]


def load_config(
    path: str | Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> LoadedConfig:
    """Read, override, expand and check a run's configuration.

    Args:
        path: the YAML file.
        overrides: `a.b=value` each; the value is read as YAML, so `8`, `true`, `null` and `[a, b]` work.
        environment: where `${NAME}` is looked up; default: the process's own.

    Raises:
        ConfigError: with one message for each field that is wrong.
    """
    document = _read(Path(path))
    for override in overrides:
        _apply(document, override)
    return LoadedConfig(_checked(RunConfig, document, environment), _masked(document))


def load_storage(path: str | Path | None, overrides: Sequence[str] = ()) -> StorageConfig:
    """How stores are reached: as a run's file says it, or without one by overrides and environment alone.

    Raises:
        ConfigError: with one message for each field that is wrong.
    """
    if path is not None:
        return load_config(path, overrides).run.storage
    document: dict[str, Any] = {}
    for override in overrides:
        if not override.startswith("storage."):
            raise ConfigError([f"override {override!r}: only storage.… can be set without --config"])
        _apply(document, override)
    return _checked(_StorageOnly, document, None).storage


class _StorageOnly(BaseModel):
    storage: StorageConfig = StorageConfig()


def _checked(model: type[_M], document: dict[str, Any], environment: Mapping[str, str] | None) -> _M:
    missing: list[str] = []
    expanded = _expand(document, os.environ if environment is None else environment, missing, "")
    if missing:
        raise ConfigError(missing)
    try:
        return model.model_validate(expanded)
    except ValidationError as error:
        raise ConfigError([_explain(problem) for problem in error.errors()]) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError([f"--config {path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"--config {path} is not YAML: {error}"]) from error
    if not isinstance(document, dict):
        raise ConfigError([f"--config {path}: expected fields such as `manifest:`, found {document!r}"])
    return document


def _apply(document: dict[str, Any], override: str) -> None:
    name, equals, text = override.partition("=")
    if not equals or not all(name.split(".")):
        raise ConfigError([f"override {override!r}: write it as field.name=value"])
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError([f"override {override!r}: the value is not YAML: {error}"]) from error
    *folders, last = name.split(".")
    place = document
    for folder in folders:
        if not isinstance(place.get(folder), dict):
            place[folder] = {}
        place = place[folder]
    place[last] = value


def _expand(value: Any, environment: Mapping[str, str], missing: list[str], place: str) -> Any:
    if isinstance(value, dict):
        return {k: _expand(v, environment, missing, f"{place}.{k}".lstrip(".")) for k, v in value.items()}
    if isinstance(value, list):
        return [_expand(v, environment, missing, f"{place}[{i}]") for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        found = environment.get(match.group(1))
        if found is None:
            missing.append(f"{place}: the environment has no variable {match.group(1)}; set it or write it")
        return found or ""

    return _VARIABLE.sub(variable, value)


def _masked(document: dict[str, Any]) -> dict[str, Any]:
    storage = document.get("storage")
    s3 = storage.get("s3") if isinstance(storage, dict) else None
    if not isinstance(storage, dict) or not isinstance(s3, dict):
        return document
    shown = {k: "***" if k in _SECRETS and not _VARIABLE.fullmatch(str(v)) else v for k, v in s3.items()}
    return {**document, "storage": {**storage, "s3": shown}}


def _explain(problem: Any) -> str:
    location = [part for part in problem["loc"] if isinstance(part, str | int)]
    field = ".".join(str(part) for part in location)
    if problem["type"] == "missing":
        return f"{field}: is required"
    if problem["type"] == "extra_forbidden":
        names = _fields_at(RunConfig, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        return f"{field}: no such field; {hint}"
    message = problem["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(problem["input"], dict) or "secret" in field else f" (found {problem['input']!r})"
    return f"{field + ': ' if field else ''}{message}{shown}"


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    for part in location:
        field = model.model_fields.get(str(part))
        annotation = field.annotation if field else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)
