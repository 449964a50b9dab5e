"""HTTP(S) for URLs that strangers wrote: bounded, and never to an address that they have no business with."""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import errno
import functools
import re
import socket
import ssl
import weakref
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from fsspec.asyn import get_loop, sync
from yarl import URL

from pipeline.config import HttpConfig, TimeoutConfig
from pipeline.errors import Code, ItemError
from pipeline.storage.addresses import is_reachable
from pipeline.storage.body import read_body
from pipeline.storage.faults import BusyError, is_busy_status, seconds_of
from pipeline.storage.info import Fetched, version_text
from pipeline.storage.uris import redact

WEB_SCHEMES = frozenset({"http", "https"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_NO_HEAD = frozenset({405, 501})
_WRITTEN_OUT = re.compile(r"[!-~]+")


class Web:
    """A pool of connections, for all threads of a process.

    Addresses are checked where a socket is made for one, after names are resolved and for every redirect:
    what is connected to is what was checked. No cookies, proxies or `.netrc` of the machine are used.
    """

    def __init__(self, http: HttpConfig, timeouts: TimeoutConfig, schemes: frozenset[str]) -> None:
        self._http = http
        self._schemes = schemes & WEB_SCHEMES
        self._timeout = aiohttp.ClientTimeout(
            total=timeouts.total, sock_connect=timeouts.connect, sock_read=timeouts.read
        )
        self._pool: aiohttp.ClientSession | None = None
        self._slots: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()

    def fetch(self, uri: str, max_bytes: int) -> Fetched:
        """The body of the answer to a GET, and its version.

        Raises:
            ItemError: the server or the rules refuse.
            TooLargeError: more than `max_bytes`, as told or as it came.
            aiohttp.ClientError, OSError: as the network fails.
        """
        return sync(get_loop(), self._fetch, uri, max_bytes)  # type: ignore[no-any-return]

    def version(self, uri: str) -> str | None:
        """What `fetch` gives as version, by a HEAD; None where the server answers none. Raises as `fetch`."""
        return sync(get_loop(), self._version, uri)  # type: ignore[no-any-return]

    async def _fetch(self, uri: str, max_bytes: int) -> Fetched:
        async with self._answer("GET", uri) as answer:
            _check_status(answer)
            return Fetched(await read_body(answer, max_bytes), _version_of(answer))

    async def _version(self, uri: str) -> str | None:
        async with self._answer("HEAD", uri) as answer:
            if answer.status in _NO_HEAD:
                return None
            _check_status(answer)
            return _version_of(answer)

    @contextlib.asynccontextmanager
    async def _answer(self, method: str, uri: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The first answer that is no redirect."""
        url, credentials = _parsed(uri)
        for _ in range(self._http.max_redirects + 1):
            async with self._slot(url), self._request(method, url, credentials) as answer:
                if answer.status not in _REDIRECTS:
                    yield answer
                    return
                target = self._target(url, answer)
            if target.origin() != url.origin():
                credentials = {}
            url = target
        raise ItemError(
            Code.REDIRECT_NOT_ALLOWED,
            f"{redact(uri)}: more than {self._http.max_redirects} redirects (storage.http.max_redirects)",
        )

    def _request(self, method: str, url: URL, credentials: dict[str, str]) -> Any:
        headers = {"User-Agent": self._http.user_agent, "Accept-Encoding": "identity", **credentials}
        return self._session().request(method, url, headers=headers, allow_redirects=False)

    def _slot(self, url: URL) -> asyncio.Semaphore:
        host = url.host or ""
        slot = self._slots.get(host)
        if slot is None:
            slot = self._slots[host] = asyncio.Semaphore(self._http.per_host)
        return slot

    def _target(self, url: URL, answer: aiohttp.ClientResponse) -> URL:
        location = answer.headers.get("Location", "")
        try:
            # With user name and password of its own it could make this side log in where it likes.
            target = url.join(URL(location, encoded=_is_written_out(location)))
            target = target.with_user(None).with_fragment(None)
        except ValueError:
            target = URL()
        if target.scheme not in self._schemes or not target.host:
            reason = f"only to {', '.join(sorted(self._schemes))} (storage.allowed_schemes)"
        elif url.scheme == "https" and target.scheme == "http":
            reason = "from https to http, which anyone on the way could change"
        else:
            return target
        shown = f"{redact(str(url))} redirects to {redact(location) or 'nowhere'}"
        raise ItemError(Code.REDIRECT_NOT_ALLOWED, f"{shown}: {reason}")

    def _session(self) -> aiohttp.ClientSession:
        if self._pool is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                resolver=aiohttp.ThreadedResolver(),
                socket_factory=self._socket,
                ssl=ssl.create_default_context(),
            )
            self._pool = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
            atexit.register(sync, get_loop(), self._pool.close, timeout=1)
        return self._pool

    def _socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, place = address
        if not is_reachable(place[0], self._http.allowed_networks):
            raise PermissionError(errno.EACCES, f"{place[0]} is not a public address")
        return socket.socket(family, kind, protocol)


@functools.cache
def web(http: HttpConfig, timeouts: TimeoutConfig, schemes: frozenset[str]) -> Web:
    """The process's one pool for these settings."""
    return Web(http, timeouts, schemes)


def _parsed(uri: str) -> tuple[URL, dict[str, str]]:
    """The URL without user name and password, and these as a header."""
    url = URL(uri, encoded=_is_written_out(uri))
    if not url.host:
        raise ValueError("no host")
    if url.user is None and url.password is None:
        return url.with_fragment(None), {}
    pair = f"{url.user or ''}:{url.password or ''}".encode()
    return url.with_user(None).with_fragment(None), {
        "Authorization": f"Basic {base64.b64encode(pair).decode()}"
    }


def _is_written_out(uri: str) -> bool:
    """Whether the URL is as it goes over the wire; quoting it again could break a signature."""
    return _WRITTEN_OUT.fullmatch(uri) is not None


def _check_status(answer: aiohttp.ClientResponse) -> None:
    status, shown = answer.status, redact(str(answer.url))
    if 200 <= status < 300:
        return
    if is_busy_status(status):
        raise BusyError(f"HTTP {status}", seconds_of(answer.headers.get("Retry-After")))
    code = Code.FETCH_NOT_FOUND if status in _GONE else Code.FETCH_DENIED
    raise ItemError(code, f"{shown}: HTTP {status}")


def _version_of(answer: aiohttp.ClientResponse) -> str | None:
    """Size with a strong ETag, or else the time of modification; a weak ETag promises too little."""
    etag = answer.headers.get("ETag", "")
    mark = answer.headers.get("Last-Modified") if etag.startswith("W/") or not etag else etag.strip('"')
    return version_text(answer.content_length, mark)
