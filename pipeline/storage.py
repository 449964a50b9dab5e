"""Files wherever they are, through fsspec: read within bounds, list, and put whole or not at all."""

from __future__ import annotations

import os
import posixpath
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

import fsspec
from botocore.exceptions import BotoCoreError

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")


def scheme_of(uri: str) -> str:
    """The URI's scheme in lower case; `file` for a plain local path."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else "file"


def is_absolute(uri: str) -> bool:
    """Whether the URI stands by itself: it has a scheme, or is an absolute local path."""
    return bool(_SCHEME.match(uri)) or uri.startswith("/")


def join(base: str, relative: str) -> str:
    """The URI of `relative` below the folder `base`; `..` is resolved, never above the bucket."""
    if is_absolute(relative):
        return relative
    match = _SCHEME.match(base)
    head, folder = (match.group(0), base[match.end() :]) if match else ("", base)
    root, slash, rest = folder.partition("/") if match else ("", "", folder)
    path = posixpath.normpath(posixpath.join("/" + rest if match else rest, relative))
    return f"{head}{root}{slash or '/'}{path.lstrip('/')}" if match else path


def parent(uri: str) -> str:
    """The URI of the folder that holds `uri`."""
    folder = uri.rstrip("/").rpartition("/")[0]
    return folder or ("/" if uri.startswith("/") else ".")


def redact(uri: str) -> str:
    """The URI without user name, password and query (which may be a signature): for logs and results."""
    if not _SCHEME.match(uri):
        return uri
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", ""))


@dataclass(frozen=True)
class FileInfo:
    """One file as its store describes it. `etag` and `mtime` (seconds) where the store has them."""

    uri: str
    size: int
    etag: str | None = None
    mtime: float | None = None


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
        options = _s3_options(self.config) if scheme in ("s3", "s3a") else {}
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
        return _file_info(uri, entry)

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

    def fetch(self, uri: str, max_bytes: int) -> bytes:
        """The bytes of a manifest's URI, in one request that never reads more than `max_bytes` + 1.

        Raises:
            ItemError: with the code that tells why it could not or may not be read.
        """
        self._check_allowed(uri)
        fs, path = self.filesystem(uri)
        with _coded(uri):
            data: bytes = _read_head(fs, path, max_bytes + 1)
        if len(data) > max_bytes:
            raise ItemError(
                Code.TOO_LARGE, f"{redact(uri)} has more than media.max_bytes = {max_bytes:,} bytes"
            )
        if not data:
            raise ItemError(Code.EMPTY_FILE, f"{redact(uri)} has no bytes")
        return data

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
            return
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

    def remove(self, uris: list[str]) -> None:
        """Delete files; those already gone are no error."""
        for uri in uris:
            fs, path = self.filesystem(uri)
            try:
                fs.rm_file(path)
            except FileNotFoundError:
                continue

    def _named(self, uri: str, path: str, entry: dict[str, Any]) -> FileInfo:
        match = _SCHEME.match(uri)
        return _file_info(f"{match.group(0)}{path.lstrip('/')}" if match else path, entry)

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


def _file_info(uri: str, entry: dict[str, Any]) -> FileInfo:
    modified = entry.get("mtime", entry.get("LastModified"))
    mtime = modified.timestamp() if isinstance(modified, datetime) else modified
    etag = entry.get("ETag") or entry.get("etag")
    return FileInfo(uri, int(entry["size"] or 0), etag.strip('"') if etag else None, mtime)


def _s3_options(config: StorageConfig) -> dict[str, Any]:
    s3 = config.s3
    client: dict[str, Any] = {}
    if s3.region:
        client["region_name"] = s3.region
    options: dict[str, Any] = {
        "anon": s3.anonymous,
        "client_kwargs": client,
        "config_kwargs": {"retries": {"max_attempts": 5, "mode": "standard"}, "max_pool_connections": 64},
    }
    if s3.endpoint_url:
        options["endpoint_url"] = s3.endpoint_url
    if s3.profile:
        options["profile"] = s3.profile
    if s3.access_key_id and s3.secret_access_key:
        options["key"] = s3.access_key_id.get_secret_value()
        options["secret"] = s3.secret_access_key.get_secret_value()
    if s3.session_token:
        options["token"] = s3.session_token.get_secret_value()
    return options


def _read_head(fs: Any, path: str, count: int) -> bytes:
    if isinstance(path, str) and "file" in _protocols(fs):
        with open(path, "rb") as file:
            return file.read(count)
    try:
        return cast(bytes, fs.cat_file(path, start=0, end=count))
    except OSError as error:
        # An object store refuses any range of an empty object (HTTP 416).
        if "InvalidRange" in repr(error) or "not satisfiable" in str(error):
            return b""
        raise


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


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
