"""What a store tells of a file, and what is read of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class FileInfo:
    """One file as its store describes it. `etag` and `mtime` (seconds) where the store has them."""

    uri: str
    size: int
    etag: str | None = None
    mtime: float | None = None

    @classmethod
    def of(cls, uri: str, entry: dict[str, Any]) -> FileInfo:
        """The file of an entry as fsspec's file systems give them."""
        modified = entry.get("mtime", entry.get("LastModified"))
        mtime = modified.timestamp() if isinstance(modified, datetime) else modified
        etag = entry.get("ETag") or entry.get("etag")
        return cls(uri, int(entry["size"] or 0), etag.strip('"') if etag else None, mtime)


@dataclass(frozen=True)
class Fetched:
    """The bytes of a file, and its `version` as `Storage.version` would have told it then."""

    data: bytes
    version: str | None


class TooLargeError(Exception):
    """A file has more bytes than the caller takes."""


def version_text(size: int | None, mark: str | int | float | None) -> str | None:
    """A text that changes when the file does. `mark` is its ETag or time; None: the store tells neither."""
    return None if mark is None or mark == "" else f"{'?' if size is None else size}:{mark}"
