"""HTTP servers that fail: for a while, for good, slowly, or halfway; and what is told of it."""

from __future__ import annotations

import gzip
import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from pipeline.errors import Code, ItemError
from tests.storage.conftest import storage_of
from tests.storage.web_server import Asked, WebServer, answer

BUSY = answer(b"busy", "503 Service Unavailable")
GOOD_BODY = answer(b"0123456789")
TRUNCATED = answer(b"01234", Content_Length="10", Connection="close")
CHUNKED_TRUNCATED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\n01234\r\n"
SECRETS = ("s3cr3t-pw", "s3cr3t-signature", "user")


@pytest.mark.parametrize(
    "fault",
    [
        BUSY,
        answer(status="500 Oops"),
        answer(status="429 Too Many Requests", Retry_After="0"),
        TRUNCATED,
        CHUNKED_TRUNCATED,
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n",
        answer(gzip.compress(b"0123456789")[:-9], Content_Encoding="gzip"),
        b"nonsense\r\nConnection: close\r\n\r\n",
    ],
)
def test_a_fault_that_passes_is_not_noticed(good: WebServer, fault: bytes) -> None:
    good.says_in_turn("/a", fault, fault, GOOD_BODY)
    assert storage_of().fetch(f"http://good.test:{good.port}/a", 10).data == b"0123456789"
    assert len(good.asked) == 3


def test_a_fault_that_stays_is_a_failed_item(good: WebServer) -> None:
    good.says("/a", BUSY)
    with pytest.raises(ItemError) as raised:
        storage_of().fetch(f"http://good.test:{good.port}/a", 10)
    assert raised.value.code is Code.FETCH_FAILED
    assert raised.value.code.retryable
    assert raised.value.reason == f"http://good.test:{good.port}/a: HTTP 503 (3 tries in 0 s)"
    assert len(good.asked) == 3


def test_a_stalled_answer_is_given_up_and_asked_again(good: WebServer) -> None:
    done, times = threading.Event(), itertools.count()

    def stall(asked: Asked) -> Iterator[bytes]:
        if next(times) == 0:
            yield GOOD_BODY[:-5]
            done.wait(30)
        else:
            yield GOOD_BODY

    good.replies["/a"] = stall
    assert storage_of(read=0.5).fetch(f"http://good.test:{good.port}/a", 10).data == b"0123456789"
    done.set()
    assert len(good.asked) == 2


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"]
)
def test_an_answer_that_trickles_for_ever_ends_with_the_total_time(good: WebServer, head: bytes) -> None:
    ended = threading.Event()

    def trickle(asked: Asked) -> Iterator[bytes]:
        yield head
        while not ended.is_set():
            time.sleep(0.05)
            yield b"x"

    good.replies["/a"] = trickle
    with pytest.raises(ItemError) as raised:
        storage_of(total=0.3).fetch(f"http://good.test:{good.port}/a", 100_000)
    ended.set()
    assert raised.value.code is Code.FETCH_FAILED


def test_a_reset_connection_is_made_anew(good: WebServer) -> None:
    with socket.create_server(("127.0.0.2", 0)) as listening:
        port = listening.getsockname()[1]

        def serve() -> None:
            for reply in (b"", GOOD_BODY):
                connection, _ = listening.accept()
                connection.recv(1000)
                connection.sendall(reply)
                if not reply:
                    # Closing with a linger time of 0 sends a reset.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        assert storage_of().fetch(f"http://good.test:{port}/a", 10).data == b"0123456789"
        thread.join()


def test_a_name_that_nobody_has_is_not_found(good: WebServer) -> None:
    with pytest.raises(ItemError) as raised:
        storage_of().fetch("http://nowhere.invalid/a", 10)
    # Without any name server, that one cannot be asked now is all that is known.
    assert raised.value.code in (Code.FETCH_NOT_FOUND, Code.FETCH_FAILED)


@pytest.mark.parametrize(
    ("host", "reply"),
    [
        ("good.test", BUSY),
        ("good.test", TRUNCATED),
        ("good.test", answer(status="404 Not Found")),
        ("good.test", answer(status="403 Forbidden")),
        ("good.test", answer(status="302 Found", Location="ftp://user:s3cr3t-pw@h/?x=s3cr3t-signature")),
        ("good.test", answer(status="302 Found", Location="/a?X-Amz-Signature=s3cr3t-signature")),
        ("good.test", answer(b"x" * 11)),
        ("good.test", answer(b"")),
        ("good.test", answer(b"x", Content_Encoding="br")),
        ("good.test", answer(b"x", Content_Encoding="gzip")),
        ("127.0.0.1", b""),
        ("nowhere.invalid", b""),
        ("2130706433", b""),
        ("[::x]", b""),
        ("", b""),
        ("good.test\x00", b""),
        ("good.test:99999", b""),
    ],
)
def test_no_error_tells_a_secret_of_the_url(good: WebServer, host: str, reply: bytes) -> None:
    good.says("/a", reply)
    place = f"{host}:{good.port}" if host == "good.test" else host
    uri = f"http://user:s3cr3t-pw@{place}/a?X-Amz-Signature=s3cr3t-signature#s3cr3t-signature"
    with pytest.raises(ItemError) as raised:
        storage_of().fetch(uri, 10)
    told = f"{raised.value} {raised.value.__cause__!r}"
    assert not [secret for secret in SECRETS if secret in told]
    assert "/a" in raised.value.reason
