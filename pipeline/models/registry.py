"""Finds model specs by name: `conf/models` of the checkout or the installed wheel, or a file of one's own."""

from __future__ import annotations

import difflib
from pathlib import Path

import yaml
from pydantic import ValidationError

from pipeline.errors import ConfigError
from pipeline.models.spec import ModelSpec

_PACKAGE = Path(__file__).resolve().parent.parent


def registry_folder() -> Path:
    """`conf/models`: packed into the wheel beside the code, or at the top of a checkout (or a Ray job)."""
    packed = _PACKAGE / "conf" / "models"
    return packed if packed.is_dir() else _PACKAGE.parent / "conf" / "models"


def model_types() -> list[str]:
    """The names that `model.type` takes."""
    return sorted(path.stem for path in registry_folder().glob("*.yaml"))


def load_spec(model_type: str) -> ModelSpec:
    """The spec of a registered model type, or of the YAML file at a path.

    Raises:
        ConfigError: unknown name (with the nearest ones), or one message for each fault of the file.
    """
    own = model_type.endswith((".yaml", ".yml"))
    path = Path(model_type).expanduser() if own else registry_folder() / f"{model_type}.yaml"
    if not own and model_type not in model_types():
        names = {name.lower(): name for name in model_types()}
        near = [names[n] for n in difflib.get_close_matches(model_type.lower(), names, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(model_types())}"
        raise ConfigError([f"model.type: unknown model {model_type!r}; {hint}"])
    try:
        return ModelSpec.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except OSError as error:
        raise ConfigError([f"model.type: {path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"model.type: {path} is not YAML: {error}"]) from error
    except ValidationError as error:
        raise ConfigError(
            [": ".join([str(path), *_field(e["loc"]), e["msg"]]) for e in error.errors()]
        ) from error


def _field(location: tuple[int | str, ...]) -> list[str]:
    return [".".join(map(str, location))] if location else []
