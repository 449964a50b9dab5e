"""Local files: read without being fooled by what lies there, and put whole."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
import uuid
from pathlib import Path

from pipeline.storage.info import Fetched, TooLargeError, version_text
from pipeline.storage.uris import SCHEME

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


def local_path(uri: str) -> str:
    """The absolute path of a plain path or a `file://` URI, whose path is taken as it is written."""
    match = SCHEME.match(uri)
    return os.path.abspath(os.path.expanduser(uri[match.end() :] if match else uri))


def read_file(path: str, max_bytes: int) -> Fetched:
    """The bytes of a regular file, and its version.

    Opening never waits for a writer, as a named pipe would make it, and follows no symbolic link.

    Raises:
        FileNotFoundError: what is there is no regular file.
        TooLargeError: it has more than `max_bytes`.
        OSError: as the system answers.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = _regular(os.fstat(descriptor))
        data = file.read(max_bytes + 1) if status.st_size <= max_bytes else None
    if data is None or len(data) > max_bytes:
        raise TooLargeError
    return Fetched(data, version_text(status.st_size, status.st_mtime_ns))


def file_version(path: str) -> str | None:
    """What `read_file` gives as version, without opening the file. Raises as it does."""
    status = _regular(os.stat(path, follow_symlinks=False))
    return version_text(status.st_size, status.st_mtime_ns)


def put_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all: a temporary name beside it, fsync, rename, fsync of the folder."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def sweep_folder(path: str, older_than_seconds: float) -> int:
    """Remove what `put_file` left behind when it was killed; returns how many files that were."""
    oldest = time.time() - older_than_seconds
    swept = 0
    for folder, _, names in os.walk(path):
        for name in filter(_TEMPORARY.fullmatch, names):
            file = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                if file.lstat().st_mtime < oldest:
                    file.unlink()
                    swept += 1
    return swept


def _regular(status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError("not a regular file")
    return status


def _sync_folder(folder: Path) -> None:
    """Make the rename durable before anything that it replaces is removed."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
