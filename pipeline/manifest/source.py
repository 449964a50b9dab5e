"""Open a manifest file for a reader that knows which bytes it needs."""

from __future__ import annotations

from typing import BinaryIO, cast

from pipeline.storage import Storage


def open_exact(storage: Storage, uri: str) -> BinaryIO:
    """A seekable file without read-ahead: what is not asked for is not fetched, and nothing twice."""
    fs, path = storage.filesystem(uri)
    return cast(BinaryIO, fs.open(path, "rb", cache_type="none"))
