"""Which faults of a store pass by themselves, and when it asks to be tried again."""

from __future__ import annotations

import email.utils
import errno
import socket
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import botocore.exceptions as boto
from botocore.parsers import ResponseParserError

_BUSY_CODES = frozenset(
    {
        "BadDigest",
        "IncompleteBody",
        "InternalError",
        "OperationAborted",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "XAmzContentSHA256Mismatch",
    }
)
"""S3's error codes that come with a status below 500 too: throttled, or the request's body was damaged."""
_BUSY_STATUS = frozenset({408, 425, 429})
_NETWORK = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH}
    | {errno.EREMOTEIO, errno.ESTALE}
)
"""System errors of networks and network disks that Python has no class for."""
_PASSING = (
    TimeoutError,
    ConnectionError,
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    aiohttp.ClientResponseError,
    boto.ConnectionError,
    boto.FlexibleChecksumError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    ResponseParserError,
)
_LASTING = (aiohttp.ClientSSLError, aiohttp.InvalidURL, boto.SSLError)


class BusyError(OSError):
    """A server that answers that it cannot now. `after` are the seconds that it asks to wait, if it does."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(errno.EBUSY, text)
        self.after = after


def is_busy_status(status: int) -> bool:
    """Whether an HTTP status says to try again; 501 and 505 say that it would be in vain."""
    return status in _BUSY_STATUS or (status >= 500 and status not in (501, 505))


def is_transient(error: BaseException) -> bool:
    """Whether the same request may well succeed a little later."""
    answer = _answer(error)
    if answer is not None:
        code = answer.get("Error", {}).get("Code")
        return code in _BUSY_CODES or is_busy_status(_status(answer))
    if isinstance(error, _LASTING):
        return False
    if isinstance(error, aiohttp.ClientConnectorError):
        # Without a number it stands for several addresses that failed in different ways.
        return error.os_error.errno is None or _passes(error.os_error)
    return isinstance(error, _PASSING) or (isinstance(error, OSError) and _passes(error))


def wait_asked(error: BaseException) -> float | None:
    """The seconds that the store asks to wait (`Retry-After`), if it does."""
    if isinstance(error, BusyError):
        return error.after
    answer = _answer(error)
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}) if answer else {}
    return seconds_of(headers.get("retry-after"))


def seconds_of(retry_after: str | None) -> float | None:
    """The seconds of a `Retry-After`: a number, or a date (RFC 9110); None if it is neither."""
    if retry_after is None:
        return None
    if retry_after.strip().isascii() and retry_after.strip().isdigit():
        return float(retry_after)
    try:
        when = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, when.timestamp() - time.time())


def _passes(error: OSError) -> bool:
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, TimeoutError | ConnectionError) or error.errno in _NETWORK


def _answer(error: BaseException) -> dict[str, Any] | None:
    """What S3 answered, where the error is one of botocore's or made of one."""
    for one in _causes(error):
        if isinstance(one, boto.ClientError):
            return one.response  # type: ignore[no-any-return]
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _status(answer: dict[str, Any]) -> int:
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
