"""What the tests of storage share: names that resolve as a test says, servers, and short waits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.config import StorageConfig
from pipeline.storage import Storage, retry
from tests.storage.web_server import WebServer, serving

GOOD = "127.0.0.2"
"""The one address that `storage_of` may reach."""


class Names:
    """A resolver stub: `addresses[name]` are its answers, one after the other, the last for ever."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[list[str]]] = {"good.test": [[GOOD]], "other.test": [[GOOD]]}
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in self.addresses:
            return self._real(host, port, *args, **options)
        self.asked.append(host)
        answers = self.addresses[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in found
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The resolver of this process, for the test."""
    stub = Names()
    monkeypatch.setattr(socket, "getaddrinfo", stub)
    return stub


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.01)


@pytest.fixture
def good(names: Names) -> Iterator[WebServer]:
    """A server that may be reached, as `good.test`."""
    with serving(GOOD) as server:
        yield server


def storage_of(total: float = 60.0, read: float = 30.0, **http: Any) -> Storage:
    """A storage that reads http and may reach `GOOD`; three tries, each of so many seconds."""
    config = {
        "allowed_schemes": ["http", "https"],
        "http": {"allowed_networks": [f"{GOOD}/32"], **http},
        "retry": {"media": {"attempts": 3, "seconds": 300}},
        "timeouts": {"connect": 30, "read": read, "total": total},
    }
    return Storage(StorageConfig.model_validate(config))
