"""What becomes of a store's refusals where a manifest's item is fetched: coded item errors."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from botocore.exceptions import BotoCoreError

from pipeline.errors import Code, ItemError
from pipeline.storage.info import TooLargeError
from pipeline.storage.retry import GaveUpError
from pipeline.storage.uris import redact

_NO_SUCH_NAME = frozenset({errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO})


@contextmanager
def coded(uri: str, max_bytes: int | None = None) -> Iterator[None]:
    """Turn a store's refusals into coded item errors; anything else is a bug and passes.

    The texts of libraries are left out, and the errors themselves not chained: they quote URLs in full.
    """
    shown = redact(uri)
    try:
        yield
    except TooLargeError:
        reason = f"{shown} has more than media.max_bytes = {max_bytes or 0:,} bytes"
        raise ItemError(Code.TOO_LARGE, reason) from None
    except GaveUpError as error:
        raise ItemError(Code.FETCH_FAILED, f"{shown}: {reason_of(error.last)} ({error.spent})") from None
    except aiohttp.InvalidURL:
        raise ItemError(Code.BAD_URI, f"{shown} is no URL that can be fetched; mend the manifest") from None
    except aiohttp.ClientConnectorError as error:
        raise _not_connected(shown, error.os_error) from None
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise ItemError(Code.FETCH_NOT_FOUND, f"{shown} does not exist, or is no file") from None
    except PermissionError:
        raise ItemError(Code.FETCH_DENIED, f"{shown}: access denied") from None
    except ImportError as error:
        raise ItemError(Code.FETCH_FAILED, f"{shown}: {error.name} is not installed") from None
    except ValueError:
        raise ItemError(Code.BAD_URI, f"{shown!r} is no URI; mend the manifest") from None
    except (OSError, BotoCoreError, aiohttp.ClientError) as error:
        missing = isinstance(error, OSError) and error.errno in _NO_SUCH_NAME
        code = Code.FETCH_NOT_FOUND if missing else Code.FETCH_FAILED
        raise ItemError(code, f"{shown}: {reason_of(error)}") from None


def reason_of(error: BaseException) -> str:
    """What went wrong in a few words, without the text of a library that may quote a URL."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, aiohttp.ClientError):
        return error.strerror
    return type(error).__name__


def _not_connected(shown: str, error: OSError) -> ItemError:
    if error.errno == errno.EACCES:
        reason = f"{shown}: its address is not public; name its network in storage.http.allowed_networks"
        return ItemError(Code.ADDRESS_NOT_ALLOWED, reason)
    if isinstance(error, socket.gaierror):
        return ItemError(Code.FETCH_NOT_FOUND, f"{shown}: there is no such host")
    return ItemError(Code.FETCH_FAILED, f"{shown}: {type(error).__name__}")
