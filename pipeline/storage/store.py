"""Files wherever they are, through fsspec: read within bounds, list, and put whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import fsspec
from botocore.exceptions import BotoCoreError

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError
from pipeline.storage.info import Fetched, FileInfo, version_text
from pipeline.storage.local import file_version, put_file, read_file
from pipeline.storage.s3 import S3_SCHEMES, object_version, read_object, s3_options
from pipeline.storage.uris import SCHEME, redact, scheme_of


@dataclass(frozen=True)
class Storage:
    """Reads and writes URIs as the configuration allows. Picklable: connections are made where it is used.

    `root` is the folder that a manifest's own local paths may not leave (None: no local path is read
    through `fetch`); the paths of the configuration itself are trusted and not checked against it.
    """

    config: StorageConfig = field(default_factory=StorageConfig)
    root: str | None = None

    def filesystem(self, uri: str) -> tuple[Any, str]:
        """fsspec's file system for the URI, and the URI's path in it."""
        scheme = scheme_of(uri)
        if scheme == "file":
            path = uri.removeprefix("file://")
            return fsspec.filesystem("file"), os.path.abspath(os.path.expanduser(path))
        options = s3_options(self.config) if scheme in S3_SCHEMES else {}
        fs = fsspec.filesystem(scheme, **options)
        return fs, fs._strip_protocol(uri)

    def open(self, uri: str) -> BinaryIO:
        """A seekable binary file object to read from.

        Raises:
            FileNotFoundError, PermissionError, OSError: as the store answers.
        """
        fs, path = self.filesystem(uri)
        return cast(BinaryIO, fs.open(path, "rb"))

    def info(self, uri: str) -> FileInfo:
        """Size and version of one file. Raises FileNotFoundError if it is not there or is a folder."""
        fs, path = self.filesystem(uri)
        fs.invalidate_cache()
        entry = fs.info(path)
        if entry["type"] == "directory":
            raise FileNotFoundError(f"{redact(uri)} is a folder")
        return FileInfo.of(uri, entry)

    def is_folder(self, uri: str) -> bool:
        """Whether the URI is a folder (on an object store: the prefix of at least one object)."""
        fs, path = self.filesystem(uri)
        return bool(fs.isdir(path))

    def find(self, uri: str) -> list[FileInfo]:
        """All files below a folder, sorted by URI; empty if there is no such folder."""
        fs, path = self.filesystem(uri)
        fs.invalidate_cache()
        found = fs.find(path, detail=True)
        return sorted((self._named(uri, p, e) for p, e in found.items()), key=lambda f: f.uri)

    def glob(self, pattern: str) -> list[FileInfo]:
        """All files that match the pattern (`*`, `**`, `?`, `[…]`), sorted by URI."""
        fs, path = self.filesystem(pattern)
        fs.invalidate_cache()
        found = {p: e for p, e in fs.glob(path, detail=True).items() if e["type"] == "file"}
        return sorted((self._named(pattern, p, e) for p, e in found.items()), key=lambda f: f.uri)

    def fetch(self, uri: str, max_bytes: int) -> Fetched:
        """The bytes of a manifest's URI with their version, in one request that never reads much more.

        Raises:
            ItemError: with the code that tells why it could not or may not be read.
        """
        self._check_allowed(uri)
        with _coded(uri):
            fetched = self._read(uri, max_bytes + 1)
        if len(fetched.data) > max_bytes:
            raise ItemError(
                Code.TOO_LARGE, f"{redact(uri)} has more than media.max_bytes = {max_bytes:,} bytes"
            )
        if not fetched.data:
            raise ItemError(Code.EMPTY_FILE, f"{redact(uri)} has no bytes")
        return fetched

    def version(self, uri: str) -> str | None:
        """What the store says of the version of a manifest's URI, without reading it: what `fetch` gives.

        Its size and ETag (object stores), or size and time of modification. None: the store tells none.

        Raises:
            ItemError: as `fetch` does.
        """
        self._check_allowed(uri)
        with _coded(uri):
            fs, path = self.filesystem(uri)
            if scheme_of(uri) == "file":
                return file_version(os.path.realpath(path))
            if scheme_of(uri) in S3_SCHEMES:
                return object_version(fs, path)
            return _version_told(fs, path)

    def _read(self, uri: str, most: int) -> Fetched:
        fs, path = self.filesystem(uri)
        if scheme_of(uri) == "file":
            return read_file(os.path.realpath(path), most)
        if scheme_of(uri) in S3_SCHEMES:
            return read_object(fs, path, most)
        version = _version_told(fs, path)
        return Fetched(fs.cat_file(path, start=0, end=most), version)

    def read(self, uri: str) -> bytes:
        """All bytes of one of the run's own files. Raises FileNotFoundError, OSError."""
        fs, path = self.filesystem(uri)
        return cast(bytes, fs.cat_file(path))

    def put(self, uri: str, data: bytes) -> None:
        """Write a file whole or not at all, replacing what was there.

        Local: a temporary name beside it, fsync, rename. Object stores: one PUT, which they make atomic.
        """
        fs, path = self.filesystem(uri)
        if scheme_of(uri) != "file":
            fs.pipe_file(path, data)
        else:
            put_file(path, data)

    def remove(self, uris: list[str]) -> None:
        """Delete files; those already gone are no error."""
        for uri in uris:
            fs, path = self.filesystem(uri)
            try:
                fs.rm_file(path)
            except FileNotFoundError:
                continue

    def _named(self, uri: str, path: str, entry: dict[str, Any]) -> FileInfo:
        match = SCHEME.match(uri)
        return FileInfo.of(f"{match.group(0)}{path.lstrip('/')}" if match else path, entry)

    def _check_allowed(self, uri: str) -> None:
        scheme = scheme_of(uri)
        if scheme not in self.config.allowed_schemes:
            raise ItemError(
                Code.SCHEME_NOT_ALLOWED,
                f"{redact(uri)}: only {', '.join(sorted(self.config.allowed_schemes))} are read "
                "(storage.allowed_schemes)",
            )
        if scheme == "file":
            path = os.path.realpath(self.filesystem(uri)[1])
            roots = [*self.config.allowed_roots, *([self.root] if self.root else [])]
            if not any(_is_below(path, self.filesystem(root)[1]) for root in roots):
                raise ItemError(
                    Code.PATH_NOT_ALLOWED,
                    f"{uri} is outside of the manifest's folder; name its folder in storage.allowed_roots",
                )


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath([path, os.path.realpath(root)]) == os.path.realpath(root)


def _version_told(fs: Any, path: str) -> str | None:
    fs.invalidate_cache()
    info = FileInfo.of(path, fs.info(path))
    return version_text(info.size, info.etag or info.mtime)


@contextmanager
def _coded(uri: str) -> Iterator[None]:
    """Turn a store's refusals into coded item errors; anything else is a bug and passes."""
    shown = redact(uri)
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise ItemError(Code.FETCH_NOT_FOUND, f"{shown} does not exist") from error
    except PermissionError as error:
        raise ItemError(Code.FETCH_DENIED, f"{shown}: access denied") from error
    except (ImportError, ValueError) as error:
        raise ItemError(Code.FETCH_FAILED, f"{shown}: {type(error).__name__}: {error}") from error
    except (OSError, BotoCoreError) as error:
        raise ItemError(Code.FETCH_FAILED, f"{shown}: {type(error).__name__}") from error
