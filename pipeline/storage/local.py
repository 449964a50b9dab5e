"""Local files: read without being fooled by what lies there, and put whole."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

from pipeline.storage.info import Fetched, version_text


def read_file(path: str, most: int) -> Fetched:
    """Up to `most` bytes of a regular file, and its version.

    Opening never waits for a writer, as a named pipe would make it.

    Raises:
        FileNotFoundError: what is there is no regular file.
        OSError: as the system answers, `path` being a symbolic link included.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError("not a regular file")
        return Fetched(file.read(most), version_text(status.st_size, status.st_mtime_ns))


def file_version(path: str) -> str | None:
    """What `read_file` gives as version, without opening the file. Raises as it does."""
    status = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError("not a regular file")
    return version_text(status.st_size, status.st_mtime_ns)


def put_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all: a temporary name beside it, fsync, rename."""
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
