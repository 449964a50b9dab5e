"""Where a model's files are: a folder, a hub name, or a copy on this node of an object-store folder."""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path

from filelock import FileLock

from pipeline.errors import EngineError
from pipeline.identity import canonical
from pipeline.storage import FileInfo, Storage, is_absolute, scheme_of

_SMALL = 4 * 2**20


def is_folder_path(path: str) -> bool:
    """Whether `model.path` names a local folder rather than a hub repository or a store."""
    return scheme_of(path) == "file" and (is_absolute(path) or path.startswith(".") or Path(path).is_dir())


def fingerprint(storage: Storage, path: str) -> str:
    """What tells one model's files from another's, without reading the weights.

    Names and sizes of all files and the bytes of the small ones (configuration, tokenizer, index of the
    weights). A hub name is its own fingerprint; its revision stands beside it in the recipe.
    """
    if scheme_of(path) == "file" and not is_folder_path(path):
        return path
    digest = blake2b(digest_size=16)
    for file in storage.find(path):
        digest.update(canonical([_below(path, file, storage), file.size]))
        if file.size <= _SMALL:
            digest.update(storage.read(file.uri))
    return digest.hexdigest()


def locate(storage: Storage, path: str, absolute: str, cache: Path | None = None) -> str:
    """What vLLM is given as `model`, on the node where it is called.

    Args:
        path: `model.path` as configured.
        absolute: the same as the driver resolved it, for local folders.
        cache: where copies from object stores are kept; default `~/.cache/framescribe/models`.

    Raises:
        EngineError: a local folder that this node does not have, an empty store folder.
    """
    if scheme_of(path) != "file":
        return str(_copy(storage, path, cache or _default_cache()))
    if not is_folder_path(path) and not is_folder_path(absolute):
        return path
    for candidate in (absolute, path):
        if Path(candidate).is_dir():
            return str(Path(candidate).resolve())
    raise EngineError(f"model.path: this node has no folder {absolute}; use a shared folder or object storage")


def _default_cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "framescribe" / "models"


def _copy(storage: Storage, uri: str, cache: Path) -> Path:
    files = storage.find(uri)
    if not files:
        raise EngineError(f"model.path: {uri} has no files")
    versions = [[_below(uri, f, storage), f.size, f.etag, None if f.etag else f.mtime] for f in files]
    folder = cache / blake2b(canonical([uri, versions]), digest_size=12).hexdigest()
    complete = folder / ".complete"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not complete.exists():
            for file in files:
                target = folder / _below(uri, file, storage)
                target.parent.mkdir(parents=True, exist_ok=True)
                fs, path = storage.filesystem(file.uri)
                fs.get_file(path, str(target))
            complete.write_text(json.dumps(versions), "utf-8")
    return folder


def _below(folder: str, file: FileInfo, storage: Storage) -> str:
    root = storage.filesystem(folder)[1].rstrip("/") + "/"
    return storage.filesystem(file.uri)[1].removeprefix(root)
