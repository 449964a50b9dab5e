"""HTTP from a hostile manifest: redirects, rebinding and spellings never reach the forbidden server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import Code, ItemError
from pipeline.storage import Storage
from tests.storage.certificates import write_certificate
from tests.storage.conftest import GOOD, Names, storage_of
from tests.storage.web_server import WebServer, answer, serving


@pytest.fixture
def forbidden() -> Iterator[WebServer]:
    """A server on every address of this machine, IPv4 and IPv6, that nobody may reach."""
    with serving("::") as server:
        server.says("/", answer(b"secret"))
        yield server


def refused(storage: Storage, uri: str) -> ItemError:
    with pytest.raises(ItemError) as raised:
        storage.fetch(uri, 100)
    return raised.value


@pytest.mark.parametrize("address", ["127.0.0.1", GOOD, "::1", "::ffff:127.0.0.1"])
def test_the_forbidden_server_is_there_for_others(forbidden: WebServer, address: str) -> None:
    with socket.create_connection((address, forbidden.port), 5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(100).endswith(b"secret")
    assert forbidden.connections == 1


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.3",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "good.test@127.0.0.1",
        "good.test:80@127.0.0.1",
        "inside.test",
        "both.test",
        "mapped.test",
    ],
)
def test_no_spelling_of_a_forbidden_address_is_reached(forbidden: WebServer, names: Names, host: str) -> None:
    names.addresses |= {
        "inside.test": [["127.0.0.1"]],
        "both.test": [["::1", "127.0.0.1"]],
        "mapped.test": [["::ffff:127.0.0.1"]],
    }
    error = refused(storage_of(), f"http://{host}:{forbidden.port}/")
    assert error.code in (Code.ADDRESS_NOT_ALLOWED, Code.BAD_URI)
    assert forbidden.connections == 0


def test_an_allowed_network_lets_its_addresses_in_and_no_others(forbidden: WebServer) -> None:
    storage = storage_of(allowed_networks=["127.0.0.1/32", "::1/128"])
    for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"):
        assert storage.fetch(f"http://{host}:{forbidden.port}/", 100).data == b"secret"
    assert forbidden.connections == 3
    assert refused(storage, f"http://{GOOD}:{forbidden.port}/").code is Code.ADDRESS_NOT_ALLOWED
    assert forbidden.connections == 3


def test_a_name_that_resolves_differently_later_gains_nothing(
    forbidden: WebServer, good: WebServer, names: Names
) -> None:
    good.says("/", answer(b"good", Connection="close"))
    # Another port is another entry of any cache of names: each of the two is resolved anew.
    names.addresses["rebind.test"] = [[GOOD], ["127.0.0.1"]]
    storage = storage_of()
    assert storage.fetch(f"http://rebind.test:{good.port}/", 100).data == b"good"
    assert refused(storage, f"http://rebind.test:{forbidden.port}/").code is Code.ADDRESS_NOT_ALLOWED
    assert names.asked == ["rebind.test", "rebind.test"]
    assert forbidden.connections == 0


def test_of_several_addresses_the_allowed_one_is_used(
    forbidden: WebServer, good: WebServer, names: Names
) -> None:
    good.says("/", answer(b"good"))
    names.addresses["several.test"] = [["::1", "127.0.0.1", GOOD]]
    assert storage_of().fetch(f"http://several.test:{good.port}/", 100).data == b"good"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_forbidden_address_is_not_followed(
    forbidden: WebServer, good: WebServer, names: Names, status: int
) -> None:
    names.addresses["inside.test"] = [["127.0.0.1"]]
    storage = storage_of()
    for host in ("127.0.0.1", "inside.test", "[::1]", "2130706433"):
        location = f"http://{host}:{forbidden.port}/"
        good.says("/first", answer(status=f"{status} Moved", Location="/second"))
        good.says("/second", answer(status=f"{status} Moved", Location=location))
        error = refused(storage, f"http://good.test:{good.port}/first")
        assert error.code in (Code.ADDRESS_NOT_ALLOWED, Code.BAD_URI)
    assert len(good.asked) == 8
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "s3://bucket/key",
        "ftp://good.test/x",
        "gopher://good.test",
        "data:,x",
        "http://",
        "",
    ],
)
def test_a_redirect_out_of_http_is_refused(good: WebServer, location: str) -> None:
    good.says("/", answer(status="302 Found", Location=location))
    assert refused(storage_of(), f"http://good.test:{good.port}/").code is Code.REDIRECT_NOT_ALLOWED


def test_redirects_are_followed_as_far_as_allowed(good: WebServer) -> None:
    for number in range(4):
        good.says(f"/{number}", answer(status="302 Found", Location=f"{number + 1}"))
    good.says("/4", answer(b"end"))
    good.says("/loop", answer(status="302 Found", Location="/loop"))
    base = f"http://good.test:{good.port}"
    assert storage_of(max_redirects=4).fetch(f"{base}/0", 100).data == b"end"
    assert refused(storage_of(max_redirects=3), f"{base}/0").code is Code.REDIRECT_NOT_ALLOWED
    good.asked.clear()
    assert refused(storage_of(max_redirects=3), f"{base}/loop").code is Code.REDIRECT_NOT_ALLOWED
    assert len(good.asked) == 4


def test_credentials_and_cookies_stay_with_their_host(good: WebServer) -> None:
    other = f"http://other.test:{good.port}"
    good.says("/a", answer(status="302 Found", Location="/b", Set_Cookie="session=s3cr3t; Domain=test"))
    good.says("/b", answer(status="302 Found", Location=f"{other}/c"))
    good.says("/c", answer(status="302 Found", Location=f"http://x:y@other.test:{good.port}/d"))
    good.says("/d", answer(b"end"))
    assert storage_of().fetch(f"http://user:p%40ss@good.test:{good.port}/a", 100).data == b"end"
    # "user:p@ss" in Base64, as RFC 7617 has it.
    assert [asked.headers.get("authorization") for asked in good.asked] == ["Basic dXNlcjpwQHNz"] * 2 + [
        None
    ] * 2
    assert not any("cookie" in asked.headers or "referer" in asked.headers for asked in good.asked)


def test_https_does_not_fall_back_to_http(
    good: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path / "server.pem", "good.test")
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with serving(GOOD, certificate) as secure:
        secure.says("/a", answer(b"safe"))
        secure.says("/down", answer(status="302 Found", Location=f"http://good.test:{good.port}/"))
        secure.says("/up", answer(status="302 Found", Location="/a"))
        storage, base = storage_of(user_agent="https"), f"https://good.test:{secure.port}"
        assert storage.fetch(f"{base}/a", 100).data == b"safe"
        assert storage.fetch(f"{base}/up", 100).data == b"safe"
        assert refused(storage, f"{base}/down").code is Code.REDIRECT_NOT_ALLOWED
        # The certificate is for another name.
        error = refused(storage, f"https://other.test:{secure.port}/a")
        assert (error.code, "SSLCertVerificationError" in error.reason) == (Code.FETCH_FAILED, True)
        good.says("/", answer(status="302 Found", Location=f"{base}/a"))
        assert storage.fetch(f"http://good.test:{good.port}/", 100).data == b"safe"


def test_http_is_off_unless_the_run_says_so(good: WebServer) -> None:
    with pytest.raises(ItemError) as raised:
        Storage().fetch(f"http://good.test:{good.port}/", 100)
    assert raised.value.code is Code.SCHEME_NOT_ALLOWED
    assert Storage().config.allowed_schemes >= {"https", "s3", "file"}
