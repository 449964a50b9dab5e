"""S3 through s3fs: how it is reached, and an object's bytes with its version in one request."""

from __future__ import annotations

from typing import Any

from fsspec.asyn import sync

from pipeline.config import StorageConfig
from pipeline.storage.info import Fetched, version_text

S3_SCHEMES = frozenset({"s3", "s3a"})
_CHUNK = 2**20


def s3_options(config: StorageConfig) -> dict[str, Any]:
    """Options of s3fs's file system."""
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


def read_object(fs: Any, path: str, most: int) -> Fetched:
    """The bytes of an object, or of one longer than `most` the first `most`; and its version.

    Without a Range: the answer's length is the object's, and an empty object is no special case.
    """
    return sync(fs.loop, _read, fs, path, most)  # type: ignore[no-any-return]


def object_version(fs: Any, path: str) -> str | None:
    """What `read_object` gives as version, by a HEAD."""
    bucket, key, _ = fs.split_path(path)
    return _version(fs.call_s3("head_object", Bucket=bucket, Key=key))


async def _read(fs: Any, path: str, most: int) -> Fetched:
    bucket, key, _ = fs.split_path(path)
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
    body = answer["Body"]
    parts: list[bytes] = []
    missing = min(most, answer["ContentLength"])
    try:
        while missing > 0:
            part = await body.read(min(missing, _CHUNK))
            if not part:
                raise ConnectionError("the body ended before its Content-Length")
            parts.append(part)
            missing -= len(part)
    finally:
        body.close()
    return Fetched(b"".join(parts), _version(answer))


def _version(answer: dict[str, Any]) -> str | None:
    return version_text(answer["ContentLength"], answer.get("ETag", "").strip('"'))
