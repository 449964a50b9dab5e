"""Storage: reads and writes URIs as the configuration allows, and as often as its budgets do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

import aiohttp
import fsspec
from botocore.exceptions import BotoCoreError

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError, StorageError
from pipeline.storage.faults import is_transient
from pipeline.storage.info import Fetched, FileInfo, TooLargeError, version_text
from pipeline.storage.local import file_version, local_path, put_file, read_file, sweep_folder
from pipeline.storage.refusals import coded, reason_of
from pipeline.storage.retry import GaveUpError, retried
from pipeline.storage.rules import check_allowed
from pipeline.storage.s3 import (
    S3_SCHEMES,
    object_version,
    put_object,
    read_object,
    s3_filesystem,
    s3_filesystem_for_lists,
    s3_filesystem_of_one_try,
)
from pipeline.storage.uris import SCHEME, redact, scheme_of
from pipeline.storage.web import WEB_SCHEMES, Web, web

_T = TypeVar("_T")


@dataclass(frozen=True)
class Storage:
    """Reads and writes URIs as the configuration allows. Picklable: connections are made where it is used.

    `root` is the folder that a manifest's own local paths may not leave (None: no local path is read
    through `fetch`); the paths of the configuration itself are trusted and not checked against it.

    Faults that may pass are met with new tries: within `storage.retry.media` for what a manifest names,
    then the item fails; within `storage.retry.run` for the run's own files, then `StorageError` ends it.
    """

    config: StorageConfig = field(default_factory=StorageConfig)
    root: str | None = None

    def filesystem(self, uri: str) -> tuple[Any, str]:
        """fsspec's file system for the URI, with its own few retries, and the URI's path in it."""
        return self._filesystem(uri, s3_filesystem)

    def open(self, uri: str) -> BinaryIO:
        """A seekable binary file object to read from, which has its own few retries (see `stopping`).

        Raises:
            FileNotFoundError, PermissionError, OSError: as the store answers.
            StorageError: the store cannot be reached for longer than the budget.
        """
        fs, path = self.filesystem(uri)
        return cast(BinaryIO, self._own("open", uri, lambda: fs.open(path, "rb")))

    def info(self, uri: str) -> FileInfo:
        """Size and version of one file. Raises FileNotFoundError if it is not there or is a folder."""
        fs, path = self._of_one_try(uri)
        fs.invalidate_cache()
        entry = self._own("look at", uri, lambda: fs.info(path))
        if entry["type"] == "directory":
            raise FileNotFoundError(f"{redact(uri)} is a folder")
        return FileInfo.of(uri, entry)

    def is_folder(self, uri: str) -> bool:
        """Whether the URI is a folder (on an object store: the prefix of at least one object)."""
        fs, path = self._filesystem(uri, s3_filesystem_for_lists)
        fs.invalidate_cache()
        return bool(self._own("look at", uri, lambda: fs.isdir(path)))

    def find(self, uri: str) -> list[FileInfo]:
        """All files below a folder, sorted by URI; empty if there is no such folder."""
        fs, path = self._filesystem(uri, s3_filesystem_for_lists)
        fs.invalidate_cache()
        found = self._own("list", uri, lambda: fs.find(path, detail=True))
        return sorted((self._named(uri, p, e) for p, e in found.items()), key=lambda f: f.uri)

    def glob(self, pattern: str) -> list[FileInfo]:
        """All files that match the pattern (`*`, `**`, `?`, `[…]`), sorted by URI."""
        fs, path = self._filesystem(pattern, s3_filesystem_for_lists)
        fs.invalidate_cache()
        entries = self._own("list", pattern, lambda: fs.glob(path, detail=True))
        found = {p: e for p, e in entries.items() if e["type"] == "file"}
        return sorted((self._named(pattern, p, e) for p, e in found.items()), key=lambda f: f.uri)

    def fetch(self, uri: str, max_bytes: int) -> Fetched:
        """The bytes of a manifest's URI, with their version, in one request that never reads much more.

        Raises:
            ItemError: with the code that tells why it could not or may not be read.
        """
        with coded(uri, max_bytes):
            self._check_allowed(uri)
            fetched = retried(lambda: self._fetch(uri, max_bytes), self.config.retry.media)
        if not fetched.data:
            raise ItemError(Code.EMPTY_FILE, f"{redact(uri)} has no bytes")
        return fetched

    def version(self, uri: str) -> str | None:
        """What the store says of the version of a manifest's URI, without reading it: what `fetch` gives.

        Its size with its ETag or the time of its modification; None: the store tells neither.

        Raises:
            ItemError: as `fetch` does.
        """
        with coded(uri):
            self._check_allowed(uri)
            return retried(lambda: self._version(uri), self.config.retry.media)

    def read(self, uri: str) -> bytes:
        """All bytes of one of the run's own files.

        Raises:
            FileNotFoundError, PermissionError, OSError: as the store answers.
            StorageError: the store cannot be reached for longer than the budget.
        """
        fs, path = self._of_one_try(uri)
        if scheme_of(uri) in S3_SCHEMES:
            seconds = self.config.timeouts.total
            return self._own("read", uri, lambda: read_object(fs, path, None, seconds).data)
        return cast(bytes, self._own("read", uri, lambda: fs.cat_file(path)))

    def put(self, uri: str, data: bytes) -> None:
        """Write a file whole or not at all, replacing what was there.

        Local: a temporary name beside it, fsync, rename. Object stores: one PUT, which they make atomic.

        Raises:
            StorageError: it cannot be written.
        """
        fs, path = self._of_one_try(uri)
        if scheme_of(uri) == "file":
            write = partial(put_file, path, data)
        elif scheme_of(uri) in S3_SCHEMES:
            write = partial(put_object, fs, path, data, self.config.timeouts)
        else:
            write = partial(fs.pipe_file, path, data)
        try:
            self._own("write", uri, write)
        except (OSError, BotoCoreError) as error:
            raise _outage("write", uri, reason_of(error)) from error

    def remove(self, uris: list[str]) -> None:
        """Delete files; those already gone are no error. Raises as `read` does."""
        for uri in uris:
            self._own("remove", uri, partial(_remove, *self._of_one_try(uri)))

    @contextmanager
    def stopping(self, doing: str, uri: str) -> Iterator[None]:
        """Turn faults that may pass into `StorageError`, for work with `filesystem` or `open`.

        They have been tried again already, by s3fs.
        """
        try:
            yield
        except (OSError, BotoCoreError, aiohttp.ClientError) as error:
            if not is_transient(error):
                raise
            raise _outage(doing, uri, reason_of(error)) from error

    def sweep(self, folder: str, older_than_seconds: float) -> int:
        """Remove temporary files that a killed `put` left below a local folder; returns how many.

        Only those older than so many seconds: younger ones may be somebody's at work. Object stores
        have none.
        """
        return sweep_folder(local_path(folder), older_than_seconds) if scheme_of(folder) == "file" else 0

    def _filesystem(self, uri: str, s3: Callable[[StorageConfig], Any]) -> tuple[Any, str]:
        scheme = scheme_of(uri)
        if scheme == "file":
            return fsspec.filesystem("file"), local_path(uri)
        fs = s3(self.config) if scheme in S3_SCHEMES else fsspec.filesystem(scheme)
        return fs, fs._strip_protocol(uri)

    def _of_one_try(self, uri: str) -> tuple[Any, str]:
        return self._filesystem(uri, s3_filesystem_of_one_try)

    def _web(self) -> Web:
        return web(self.config.http, self.config.timeouts, self.config.allowed_schemes)

    def _own(self, doing: str, uri: str, action: Callable[[], _T]) -> _T:
        """Do something with one of the run's own files, within the run's budget."""
        try:
            return retried(action, self.config.retry.run)
        except GaveUpError as error:
            raise _outage(doing, uri, f"{reason_of(error.last)} ({error.spent})") from error

    def _fetch(self, uri: str, max_bytes: int) -> Fetched:
        scheme = scheme_of(uri)
        if scheme == "file":
            return read_file(os.path.realpath(local_path(uri)), max_bytes)
        if scheme in WEB_SCHEMES:
            return self._web().fetch(uri, max_bytes)
        fs, path = self._of_one_try(uri)
        if scheme in S3_SCHEMES:
            return read_object(fs, path, max_bytes, self.config.timeouts.total)
        version = _version_told(fs, path)
        data = cast(bytes, fs.cat_file(path, start=0, end=max_bytes + 1))
        if len(data) > max_bytes:
            raise TooLargeError
        return Fetched(data, version)

    def _version(self, uri: str) -> str | None:
        scheme = scheme_of(uri)
        if scheme == "file":
            return file_version(os.path.realpath(local_path(uri)))
        if scheme in WEB_SCHEMES:
            return self._web().version(uri)
        fs, path = self._of_one_try(uri)
        return object_version(fs, path) if scheme in S3_SCHEMES else _version_told(fs, path)

    def _named(self, uri: str, path: str, entry: dict[str, Any]) -> FileInfo:
        match = SCHEME.match(uri)
        return FileInfo.of(f"{match.group(0)}{path.lstrip('/')}" if match else path, entry)

    def _check_allowed(self, uri: str) -> None:
        roots = [*self.config.allowed_roots, *([self.root] if self.root else [])]
        check_allowed(uri, self.config.allowed_schemes, roots)


def _outage(doing: str, uri: str, reason: str) -> StorageError:
    return StorageError(
        f"cannot {doing} {redact(uri)}: {reason}; the same command goes on from what is durable"
    )


def _remove(fs: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        fs.rm_file(path)


def _version_told(fs: Any, path: str) -> str | None:
    fs.invalidate_cache()
    info = FileInfo.of(path, fs.info(path))
    return version_text(info.size, info.etag or info.mtime)
