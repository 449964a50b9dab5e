"""An S3 store that fails now and then changes nothing; one that fails for long is told of in one line."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError, StorageError
from pipeline.storage import Fetched, Storage
from tests.conftest import S3Server
from tests.faults.s3_proxy import FaultyProxy, Rates, faulty_proxy

SOME = Rates(busy=0.1, reset=0.05, lost=0.05, truncated=0.1, stalled=0.02)
FILES = 40


def storage_at(proxy: FaultyProxy, server: S3Server, attempts: int = 12, read: float = 2.0) -> Storage:
    config: dict[str, Any] = {**server.config}
    config["s3"] = {**config["s3"], "endpoint_url": proxy.endpoint}
    budget = {"attempts": attempts, "seconds": 300}
    config |= {
        "retry": {"media": budget, "run": budget},
        "timeouts": {"connect": 30, "read": read, "total": 60},
    }
    return Storage(StorageConfig.model_validate(config))


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    with faulty_proxy(s3_server.endpoint, SOME, seed=7) as running:
        yield running


def test_every_operation_comes_through(s3_server: S3Server, proxy: FaultyProxy) -> None:
    bucket, storage = s3_server.make_bucket(), storage_at(proxy, s3_server)
    wanted = {f"{bucket}/f/{n:02d}.bin": bytes([n]) * (n * 1000 + 1) for n in range(FILES)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(storage.put, wanted.keys(), wanted.values()))
        assert list(pool.map(storage.read, wanted)) == list(wanted.values())
        fetched = list(pool.map(lambda uri: storage.fetch(uri, 10**6), wanted))
        versions = list(pool.map(storage.version, wanted))
    assert [one.data for one in fetched] == list(wanted.values())
    assert [one.version for one in fetched] == versions
    assert [(file.uri, file.size) for file in storage.find(f"{bucket}/f")] == [
        (uri, len(data)) for uri, data in wanted.items()
    ]
    assert storage.info(f"{bucket}/f/07.bin").size == 7001
    with storage.open(f"{bucket}/f/39.bin") as file:
        assert file.read() == wanted[f"{bucket}/f/39.bin"]
    storage.remove([*wanted])
    assert s3_server.storage.find(f"{bucket}/f") == []
    assert proxy.faults.keys() == {"busy", "reset", "lost", "truncated", "stalled"}


def test_what_is_not_there_is_asked_for_once(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    with faulty_proxy(s3_server.endpoint, Rates()) as honest:
        storage = storage_at(honest, s3_server)
        with pytest.raises(ItemError) as raised:
            storage.fetch(f"{bucket}/none.jpg", 10)
        assert raised.value.code is Code.FETCH_NOT_FOUND
        assert honest.requests == 1
        with pytest.raises(FileNotFoundError):
            storage.read(f"{bucket}/none.jpg")
        assert honest.requests == 2


def test_the_tries_are_those_of_the_budget_and_no_others(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    with faulty_proxy(s3_server.endpoint, Rates(busy=1.0)) as broken:
        storage = storage_at(broken, s3_server, attempts=3)
        with pytest.raises(ItemError) as raised:
            storage.fetch(f"{bucket}/a.jpg", 10)
        assert (raised.value.code, broken.requests) == (Code.FETCH_FAILED, 3)
        assert "3 tries in" in raised.value.reason
        for number, action in enumerate(
            (lambda: storage.put(f"{bucket}/a", b"x"), lambda: storage.read(f"{bucket}/a"))
        ):
            with pytest.raises(StorageError) as stopped:
                action()
            assert broken.requests == 6 + 3 * number
            assert f"{bucket}/a: " in str(stopped.value)
            assert "the same command goes on" in str(stopped.value)


def test_a_silent_server_is_given_up_at_every_operation(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    with faulty_proxy(s3_server.endpoint, Rates(stalled=1.0), stall_seconds=600) as silent:
        storage = storage_at(silent, s3_server, attempts=1, read=0.3)
        for action in (
            lambda: storage.put(f"{bucket}/a", b"x"),
            lambda: storage.read(f"{bucket}/a"),
            lambda: storage.find(bucket),
            lambda: storage.info(f"{bucket}/a"),
            lambda: storage.is_folder(bucket),
            lambda: storage.remove([f"{bucket}/a"]),
        ):
            with pytest.raises(StorageError):
                action()


def test_an_upload_to_a_server_that_never_says_to_go_on_is_given_up(s3_server: S3Server) -> None:
    # The kernel takes the connection and the header with its `Expect: 100-continue`; nobody answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        proxy = FaultyProxy(endpoint, Rates(), 0, 0.0, endpoint)
        with pytest.raises(StorageError, match="FSTimeoutError"):
            storage_at(proxy, s3_server, attempts=1, read=0.3).put("s3://bucket/a", b"x")


def test_one_request_fetches_an_object_with_its_version(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    s3_server.storage.put(f"{bucket}/a.jpg", b"0123456789")
    with faulty_proxy(s3_server.endpoint, Rates()) as honest:
        fetched = storage_at(honest, s3_server).fetch(f"{bucket}/a.jpg", 10)
        assert fetched == Fetched(b"0123456789", "10:781e5e245d69b566979b86e28d23f2c7")
        assert honest.requests == 1
        assert storage_at(honest, s3_server).version(f"{bucket}/a.jpg") == fetched.version
        assert honest.requests == 2
