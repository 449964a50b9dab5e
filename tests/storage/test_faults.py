"""Which faults pass by themselves. S3's errors are what s3fs makes of botocore's."""

from __future__ import annotations

import errno
import socket
import time
from email.utils import formatdate

import aiohttp
import botocore.exceptions as boto
import pytest
from s3fs.errors import translate_boto_error

from pipeline.storage.faults import is_busy_status, is_transient, seconds_of, wait_asked


def s3_error(status: int, code: str, **headers: str) -> OSError:
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    error = boto.ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "GetObject")
    translated = translate_boto_error(error)
    assert isinstance(translated, OSError)
    return translated


def connector_error(error: OSError) -> aiohttp.ClientConnectorError:
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    return aiohttp.ClientConnectorError(key, error)


@pytest.mark.parametrize(
    "error",
    [
        s3_error(500, "InternalError"),
        s3_error(503, "SlowDown"),
        s3_error(503, "503"),
        s3_error(429, "TooManyRequests"),
        s3_error(400, "RequestTimeout"),
        s3_error(502, "whatever a proxy says"),
        boto.EndpointConnectionError(endpoint_url="http://h"),
        boto.ConnectTimeoutError(endpoint_url="http://h"),
        boto.ReadTimeoutError(endpoint_url="http://h"),
        boto.ConnectionClosedError(endpoint_url="http://h"),
        boto.ResponseStreamingError(error="reset"),
        boto.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError(),
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError(errno.ESTALE, "stale file handle"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        connector_error(ConnectionRefusedError(errno.ECONNREFUSED, "refused")),
        connector_error(OSError("Multiple exceptions: refused, no route")),
    ],
    ids=repr,
)
def test_passing_faults(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        s3_error(404, "NoSuchKey"),
        s3_error(403, "AccessDenied"),
        s3_error(403, "SignatureDoesNotMatch"),
        s3_error(400, "InvalidArgument"),
        s3_error(501, "NotImplemented"),
        boto.NoCredentialsError(),
        boto.SSLError(endpoint_url="https://h", error="certificate"),
        OSError(errno.ENOSPC, "no space"),
        OSError(errno.EIO, "broken disk"),
        PermissionError(errno.EACCES, "denied"),
        FileNotFoundError(),
        socket.gaierror(socket.EAI_NONAME, "no such name"),
        connector_error(PermissionError(errno.EACCES, "10.0.0.1 is not a public address")),
        ValueError(),
    ],
    ids=repr,
)
def test_lasting_faults(error: Exception) -> None:
    assert not is_transient(error)


def test_statuses() -> None:
    assert [status for status in range(400, 600) if is_busy_status(status)] == [
        408,
        425,
        429,
        500,
        *range(502, 505),
        *range(506, 600),
    ]


def test_how_long_a_server_asks_to_wait() -> None:
    assert seconds_of("120") == 120
    assert seconds_of("soon") is None
    assert seconds_of("-1") is None
    assert seconds_of("٣") is None
    assert seconds_of(formatdate(time.time() - 100, usegmt=True)) == 0
    later = seconds_of(formatdate(time.time() + 1000, usegmt=True))
    assert later is not None
    assert 900 < later <= 1000
    assert wait_asked(s3_error(503, "SlowDown", **{"retry-after": "9"})) == 9
    assert wait_asked(s3_error(503, "SlowDown")) is None
    assert wait_asked(ValueError()) is None
