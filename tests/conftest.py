"""What the tests share: an S3 server over HTTP, and offline, quiet libraries."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from pipeline.config import StorageConfig
from pipeline.storage import Storage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--crash-seeds", type=int, default=1, help="moments at which the crash matrix kills each process"
    )


REPOSITORY = Path(__file__).resolve().parent.parent
S3_SECRET = "s3-secret-that-nobody-may-see"


@dataclass(frozen=True)
class S3Server:
    """A moto server in its own process, and how to reach it."""

    endpoint: str
    log: Path

    def reads(self, bucket: str) -> list[str]:
        """The keys that have been read from a bucket, once for each request."""
        told = f'"GET /{bucket.removeprefix("s3://")}/'
        lines = [line for line in self.log.read_text("utf-8").splitlines() if told in line]
        return [line.partition(told)[2].split()[0] for line in lines]

    @property
    def config(self) -> dict[str, object]:
        """The `storage` part of a run's configuration."""
        keys = {"access_key_id": "tester", "secret_access_key": S3_SECRET}
        return {"s3": {"endpoint_url": self.endpoint, "region": "eu-west-1", **keys}}

    @property
    def storage(self) -> Storage:
        """A storage that reaches the server."""
        return Storage(StorageConfig.model_validate(self.config))

    def make_bucket(self) -> str:
        """A new bucket's URI."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        fs, _ = self.storage.filesystem("s3://any")
        fs.mkdir(name)
        return f"s3://{name}"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for the session."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as file:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(endpoint)
        yield S3Server(endpoint, log)
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(endpoint: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(endpoint, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no S3 server at {endpoint}")
