"""S3 through s3fs: how it is reached, and an object's bytes with its version in one request."""

from __future__ import annotations

import asyncio
from typing import Any

import fsspec
from fsspec.asyn import sync

from pipeline.config import StorageConfig, TimeoutConfig
from pipeline.storage.info import Fetched, TooLargeError, version_text

S3_SCHEMES = frozenset({"s3", "s3a"})
SLOWEST_UPLOAD = 2**20
"""Bytes a second; an upload that is slower is taken for stalled."""
_CHUNK = 2**20


def s3_filesystem(config: StorageConfig) -> Any:
    """s3fs's file system, whose own retries are for callers that have none."""
    return fsspec.filesystem("s3", **_options(config, tries=5))


def s3_filesystem_of_one_try(config: StorageConfig) -> Any:
    """The same without any retries, for callers that have a budget: the two would multiply."""
    fs = fsspec.filesystem("s3", **_options(config, tries=1))
    fs.retries = 1
    return fs


def s3_filesystem_for_lists(config: StorageConfig) -> Any:
    """The same with three tries for each page, so that a long list need not begin again for one of them."""
    fs = fsspec.filesystem("s3", **_options(config, tries=3))
    fs.retries = 1
    return fs


def _options(config: StorageConfig, tries: int) -> dict[str, Any]:
    s3, timeouts = config.s3, config.timeouts
    client: dict[str, Any] = {}
    if s3.region:
        client["region_name"] = s3.region
    options: dict[str, Any] = {
        "anon": s3.anonymous,
        "client_kwargs": client,
        "config_kwargs": {
            "retries": {"total_max_attempts": tries, "mode": "standard"},
            "connect_timeout": timeouts.connect,
            "read_timeout": timeouts.read,
            "max_pool_connections": 64,
        },
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


def read_object(fs: Any, path: str, max_bytes: int | None, seconds: float) -> Fetched:
    """The bytes of an object and its version, in one request of at most so many seconds.

    Without a Range: the answer's length is the object's, and an empty object is no special case.

    Raises:
        TooLargeError: it has more than `max_bytes`; nothing of it is read.
        OSError, BotoCoreError: as the store answers, or breaks off.
    """
    return sync(fs.loop, _read_within, fs, path, max_bytes, seconds)  # type: ignore[no-any-return]


def object_version(fs: Any, path: str) -> str | None:
    """What `read_object` gives as version, by a HEAD."""
    bucket, key, _ = fs.split_path(path)
    return _version(fs.call_s3("head_object", Bucket=bucket, Key=key))


def put_object(fs: Any, path: str, data: bytes, timeouts: TimeoutConfig) -> None:
    """Write an object, replacing what was there.

    The time is bounded here: while a server that was asked whether to go on (`Expect: 100-continue`) says
    nothing, aiobotocore would wait for ever.

    Raises:
        OSError, BotoCoreError: as the store answers, or does not in time.
    """
    fs.pipe_file(path, data, timeout=timeouts.read + len(data) / SLOWEST_UPLOAD)


async def _read_within(fs: Any, path: str, max_bytes: int | None, seconds: float) -> Fetched:
    async with asyncio.timeout(seconds):
        return await _read(fs, path, max_bytes)


async def _read(fs: Any, path: str, max_bytes: int | None) -> Fetched:
    bucket, key, _ = fs.split_path(path)
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
    body = answer["Body"]
    try:
        if max_bytes is not None and answer["ContentLength"] > max_bytes:
            raise TooLargeError
        parts: list[bytes] = []
        while part := await body.read(_CHUNK):  # which raises if fewer bytes come than were told
            parts.append(part)
    finally:
        body.close()
    return Fetched(b"".join(parts), _version(answer))


def _version(answer: dict[str, Any]) -> str | None:
    return version_text(answer["ContentLength"], answer.get("ETag", "").strip('"'))
