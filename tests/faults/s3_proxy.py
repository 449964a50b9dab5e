"""A proxy before an S3 server that fails as networks and stores do: seeded, counted, and for good if asked."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from aiohttp import ClientSession, web
from yarl import URL

_SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce.</Message></Error>"
_HOP_BY_HOP = frozenset({"transfer-encoding", "connection", "keep-alive", "expect", "date", "server"})


@dataclass(frozen=True)
class Rates:
    """Shares of the requests that end in each fault.

    `busy`: 503 instead of an answer. `reset`: the connection breaks before the request is passed on.
    `lost`: it breaks after, so that what was asked was done. `truncated`: half of the answer, then the end.
    `stalled`: half of the answer, then nothing for `FaultyProxy.stall_seconds`, then the end. Of an answer
    without a body nothing comes at all.
    """

    busy: float = 0.0
    reset: float = 0.0
    lost: float = 0.0
    truncated: float = 0.0
    stalled: float = 0.0


@dataclass
class FaultyProxy:
    """What a test sets and reads. After `puts_before_outage` PUTs every request is answered 503."""

    upstream: str
    rates: Rates
    seed: int
    stall_seconds: float
    endpoint: str = ""
    puts_before_outage: int | None = None
    requests: int = 0
    puts: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._names = [one.name for one in fields(Rates)]
        weights = [getattr(self.rates, name) for name in self._names]
        self._weights = [*weights, 1 - sum(weights)]

    async def serve(self, started: threading.Event, ended: threading.Event) -> None:
        """Answer requests until `ended`."""
        application = web.Application(client_max_size=2**30)
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        # Bodies pass as they are: unpacking one would change its length.
        async with ClientSession(auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
            started.set()
            await asyncio.to_thread(ended.wait)
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        body = await request.read()
        fault = self._fault(request.method)
        if fault is not None:
            self.faults[fault] += 1
        if fault in ("busy", "outage"):
            return web.Response(status=503, body=_SLOW_DOWN, content_type="application/xml")
        if fault == "reset":
            return _break(request)
        status, headers, answer = await self._passed_on(request, body)
        if fault == "stalled" and (not answer or request.method == "HEAD"):
            await asyncio.sleep(self.stall_seconds)
        if fault == "lost":
            return _break(request)
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        if fault in ("truncated", "stalled"):
            await response.write(answer[: len(answer) // 2])
            await asyncio.sleep(self.stall_seconds if fault == "stalled" else 0.0)
            return _break(request)
        await response.write(answer)
        return response

    def _fault(self, method: str) -> str | None:
        self.puts += method == "PUT"
        if self.puts_before_outage is not None and self.puts > self.puts_before_outage:
            return "outage"
        (fault,) = self._random.choices([*self._names, None], self._weights)
        return fault

    async def _passed_on(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        url = URL(self.upstream + request.raw_path, encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._session.request(request.method, url, headers=headers, data=body) as answer:
            told = {n: v for n, v in answer.headers.items() if n.lower() not in _HOP_BY_HOP}
            return answer.status, told, await answer.read()


@contextmanager
def faulty_proxy(
    upstream: str, rates: Rates, seed: int = 0, stall_seconds: float = 30.0
) -> Iterator[FaultyProxy]:
    """Run a proxy before the S3 server at `upstream`, in a thread of this process."""
    proxy = FaultyProxy(upstream, rates, seed, stall_seconds)
    started, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve(started, ended)))
    thread.start()
    try:
        assert started.wait(10)
        yield proxy
    finally:
        ended.set()
        thread.join()


def _break(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
