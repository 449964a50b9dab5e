"""HTTP: what is fetched, what is asked of the server, and how much of its answer is taken."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import threading
import tracemalloc
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.errors import Code, ItemError
from pipeline.storage import Fetched, Storage
from tests.storage.conftest import storage_of
from tests.storage.web_server import Asked, WebServer, answer

MEBIBYTE = 2**20
BOMB_MEBIBYTES = 64


def refused(storage: Storage, uri: str, max_bytes: int = 100) -> ItemError:
    with pytest.raises(ItemError) as raised:
        storage.fetch(uri, max_bytes)
    return raised.value


def test_the_body_and_its_version(good: WebServer) -> None:
    good.says("/a", answer(b"0123456789", ETag='"v1"', Last_Modified="Mon, 30 Nov 2026 10:00:00 GMT"))
    good.says("/weak", answer(b"012", ETag='W/"v1"', Last_Modified="Mon, 30 Nov 2026 10:00:00 GMT"))
    good.says("/none", answer(b"012"))
    storage, base = storage_of(), f"http://good.test:{good.port}"
    assert storage.fetch(f"{base}/a", 10) == Fetched(b"0123456789", "10:v1")
    assert storage.fetch(f"{base}/weak", 10).version == "3:Mon, 30 Nov 2026 10:00:00 GMT"
    assert storage.fetch(f"{base}/none", 10).version is None


def test_the_version_is_asked_by_a_head_and_the_same(good: WebServer) -> None:
    good.says("/a", answer(ETag='"v1"', Content_Length="10"))
    good.says("/no-head", answer(status="405 Method Not Allowed"))
    storage, base = storage_of(), f"http://good.test:{good.port}"
    assert storage.version(f"{base}/a") == "10:v1"
    assert storage.version(f"{base}/no-head") is None
    assert [asked.method for asked in good.asked] == ["HEAD", "HEAD"]
    with pytest.raises(ItemError) as raised:
        storage.version(f"{base}/gone")
    assert raised.value.code is Code.FETCH_NOT_FOUND


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("404 Not Found", Code.FETCH_NOT_FOUND),
        ("410 Gone", Code.FETCH_NOT_FOUND),
        ("401 Unauthorized", Code.FETCH_DENIED),
        ("403 Forbidden", Code.FETCH_DENIED),
        ("400 Bad Request", Code.FETCH_DENIED),
        ("501 Not Implemented", Code.FETCH_DENIED),
    ],
)
def test_a_refusal_that_stays_is_not_asked_again(good: WebServer, status: str, code: Code) -> None:
    good.says("/a", answer(b"no", status))
    assert refused(storage_of(), f"http://good.test:{good.port}/a").code is code
    assert len(good.asked) == 1


def test_one_connection_serves_many_requests(good: WebServer) -> None:
    good.says("/a", answer(b"x"))
    storage = storage_of(user_agent="one-connection")
    for _ in range(20):
        storage.fetch(f"http://good.test:{good.port}/a", 10)
    assert (good.connections, len(good.asked)) == (1, 20)


def test_no_more_requests_at_once_to_a_host_than_allowed(good: WebServer) -> None:
    four = threading.Barrier(4)
    met = []

    def reply(asked: Asked) -> Iterable[bytes]:
        with contextlib.suppress(threading.BrokenBarrierError):
            met.append(four.wait(1))  # a fourth would come in this second, if it could
        yield answer(b"x", Connection="close")

    good.replies["/a"] = reply
    storage, uri = storage_of(per_host=3), f"http://good.test:{good.port}/a"
    with ThreadPoolExecutor(12) as pool:
        assert [one.data for one in pool.map(lambda _: storage.fetch(uri, 10), range(12))] == [b"x"] * 12
    assert met == []


@pytest.mark.parametrize("path", ["/a%2Fb%20c.jpg?X-Amz-Signature=a%2Bb%7E&x=/", "/a;b=(c)!.jpg?d=e,f"])
def test_a_url_goes_out_as_it_was_written(good: WebServer, path: str) -> None:
    good.says(path.partition("?")[0], answer(b"x"))
    storage_of().fetch(f"http://good.test:{good.port}{path}#page=3", 10)
    assert good.asked[0].target == path


def test_what_a_url_may_not_have_is_quoted(good: WebServer) -> None:
    good.says("/a%20b%C3%BC.jpg", answer(b"x"))
    assert storage_of().fetch(f"http://good.test:{good.port}/a bü.jpg", 10).data == b"x"


def test_a_length_beyond_the_bound_is_refused_without_waiting_for_the_body(good: WebServer) -> None:
    ended = threading.Event()

    def reply(asked: Asked) -> Iterable[bytes]:
        yield answer(Content_Length=str(10**12))
        ended.wait(60)

    good.replies["/a"] = reply
    try:
        assert refused(storage_of(), f"http://good.test:{good.port}/a", MEBIBYTE).code is Code.TOO_LARGE
    finally:
        ended.set()


def test_a_body_without_length_is_read_no_further_than_the_bound(good: WebServer) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (MEBIBYTE, bytes(MEBIBYTE))
    good.replies["/endless"] = lambda asked: itertools.chain([head], itertools.repeat(bytes(MEBIBYTE), 512))
    good.replies["/chunked"] = lambda asked: itertools.chain(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], itertools.repeat(chunk, 512)
    )
    for path in ("/endless", "/chunked"):
        good.sent = 0
        error = refused(storage_of(), f"http://good.test:{good.port}{path}", 2 * MEBIBYTE)
        assert error.code is Code.TOO_LARGE
        # What the kernel's socket buffers took beside what was read.
        assert good.sent < 64 * MEBIBYTE


def test_more_than_the_told_length_is_never_taken(good: WebServer) -> None:
    good.says("/a", answer(b"0123456789", Content_Length="4"))
    good.says("/b", answer(b"b"))
    storage, base = storage_of(), f"http://good.test:{good.port}"
    try:
        # Where the rest comes later than the answer was read, the answer stands.
        assert storage.fetch(f"{base}/a", 10).data == b"0123"
    except ItemError as error:
        assert error.code is Code.FETCH_FAILED
    assert storage.fetch(f"{base}/b", 10).data == b"b"


@pytest.mark.parametrize(
    ("packing", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("X-GZIP", gzip.compress)]
)
def test_a_packed_body_is_unpacked_within_the_bound(good: WebServer, packing: str, pack: object) -> None:
    assert callable(pack)
    good.says("/a", answer(pack(b"0123456789" * 10), Content_Encoding=packing))
    storage, uri = storage_of(), f"http://good.test:{good.port}/a"
    assert storage.fetch(uri, 100).data == b"0123456789" * 10
    assert refused(storage, uri, 99).code is Code.TOO_LARGE
    assert good.asked[0].headers["accept-encoding"] == "identity"


def test_a_packed_bomb_takes_no_memory(good: WebServer) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(BOMB_MEBIBYTES)) + packer.flush()
    good.says("/a", answer(bomb, Content_Encoding="gzip"))
    tracemalloc.start()
    try:
        error = refused(storage_of(), f"http://good.test:{good.port}/a", MEBIBYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code is Code.TOO_LARGE
    assert peak < 16 * MEBIBYTE


@pytest.mark.parametrize(("packing", "body"), [("br", b"x"), ("gzip", b"no gzip"), ("gzip, gzip", b"x")])
def test_what_cannot_be_unpacked_is_refused(good: WebServer, packing: str, body: bytes) -> None:
    good.says("/a", answer(body, Content_Encoding=packing))
    assert refused(storage_of(), f"http://good.test:{good.port}/a").code is Code.FETCH_FAILED
    assert len(good.asked) == 1


def test_an_empty_body(good: WebServer) -> None:
    good.says("/a", answer(b""))
    assert refused(storage_of(), f"http://good.test:{good.port}/a").code is Code.EMPTY_FILE
