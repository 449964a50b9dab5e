"""Open a manifest file for a reader that knows which bytes it needs."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from pipeline.storage import Storage


def open_exact(storage: Storage, uri: str) -> BinaryIO:
    """A seekable file without read-ahead: what is not asked for is not fetched, and nothing twice."""
    fs, path = storage.filesystem(uri)
    return cast(BinaryIO, fs.open(path, "rb", cache_type="none"))


class Watched:
    """A file that remembers whether reading it failed: what fails without that is its content's fault."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.failed = False

    def read(self, size: int = -1) -> bytes:
        """As the file's own `read`."""
        self.failed = True
        data = self._source.read(size)
        self.failed = False
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
