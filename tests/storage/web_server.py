"""A small HTTP server that answers what a test tells it to, byte for byte, and remembers who came."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """One request as it came. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]


Reply = Callable[[Asked], Iterable[bytes]]


@dataclass
class WebServer:
    """Where the server is, what it answers for each path, and what happened. `sent` are bytes of bodies."""

    port: int = 0
    replies: dict[str, Reply] = field(default_factory=dict)
    connections: int = 0
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0

    def says(self, path: str, *pieces: bytes) -> None:
        """Answer the path with these bytes, header and all."""
        self.replies[path] = lambda asked: pieces

    def says_in_turn(self, path: str, *answers: bytes) -> None:
        """Answer the path differently each time, at last always the same."""
        left = list(answers)
        self.replies[path] = lambda asked: [left.pop(0) if len(left) > 1 else left[0]]


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A whole and honest answer. A header's name has `_` for `-`."""
    lines = {"Content_Length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


@contextmanager
def serving(address: str, certificate: str | None = None) -> Iterator[WebServer]:
    """Run a server at the address, at a free port; with TLS if there is a PEM file of its certificate."""
    server = WebServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            server.connections += 1
            while (asked := _read(self.rfile)) is not None:
                server.asked.append(asked)
                reply = server.replies.get(asked.target.partition("?")[0])
                for piece in reply(asked) if reply else [answer(status="404 Not Found")]:
                    try:
                        self.wfile.write(piece)
                    except OSError:
                        return
                    server.sent += len(piece)
                    if b"Connection: close" in piece:
                        return

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that go away are part of the tests."""

    with Server((address, 0), Handler) as listening:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        server.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        listening.shutdown()
        thread.join()


def _read(stream: Iterator[bytes]) -> Asked | None:
    try:
        first = next(stream, b"").decode("latin-1").split()
        headers = {}
        for line in stream:
            if not line.strip():
                break
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
    except OSError:
        return None
    return Asked(first[0], first[1], headers) if len(first) == 3 else None
