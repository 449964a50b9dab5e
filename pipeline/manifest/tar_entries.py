"""The entries of a tar by their headers: nothing is extracted, and payloads are only read when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from tarfile import HeaderError, TarInfo

from pipeline.manifest.tar_header import BLOCK, FILES, Headers
from pipeline.manifest.window import Window

MAX_EXTENSION_BYTES = 1 << 20
"""Of one header that only names the next entry (pax, GNU long name). A real one has a few hundred."""

MAX_NAME = 4096
"""Characters of a name: the longest path that Linux takes."""

_MAX_EXTENSIONS = 16
_MAX_PADDING = 1 << 16
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
}
_UNFIT = re.compile("[\0-\x1f\ud800-\udfff]")
_PAX = re.compile(rb"(\d{1,7}) ([^=]+)=")


@dataclass(frozen=True)
class Entry:
    """One entry that is no folder. Its headers begin at byte `begin`, its `size` bytes at `data`.

    `problem` says for people why it may not be read: a link, a name that leaves the tar, …
    """

    name: str
    begin: int
    data: int
    size: int
    problem: str | None = None


def entries(window: Window, start: int) -> Iterator[Entry]:
    """Yield the entries from the header at byte `start` to the window's end, or the tar's.

    Raises:
        ValueError: it is no tar, is damaged or cut off, or has headers of absurd sizes; with the place.
    """
    headers = Headers(window)
    at = start
    while at < window.stop:
        try:
            first = headers.at(at)
            if first is None:
                _check_end(window, at)
                return
            entry, at = _next(window, headers, at, first)
        except HeaderError as error:
            raise ValueError(f"there is no tar header at byte {at} ({error})") from error
        except EOFError as error:
            raise ValueError(f"it is cut off: {error}") from error
        if entry is not None:
            yield entry


def _next(window: Window, headers: Headers, begin: int, first: TarInfo) -> tuple[Entry | None, int]:
    """The entry whose headers begin at byte `begin`, None for a folder; and where the next begins."""
    at = begin
    said: dict[str, str] = {}
    info: TarInfo | None = first
    for _ in range(_MAX_EXTENSIONS):
        if info is None:
            raise ValueError(f"the entry at byte {begin} has only headers that name it")
        at += BLOCK
        if info.size < 0:
            raise ValueError(f"the entry at byte {begin} has the size {info.size}")
        if info.type not in (b"L", b"K", b"x", b"X", b"g"):
            pieces = info.type == b"S" and window.read(at - BLOCK, BLOCK)[482]
            while pieces:  # GNU's list of a sparse file's pieces goes on
                pieces = window.read(at, BLOCK)[504]
                at += BLOCK
            return _entry(window, (begin, at), info, said)
        if info.size > MAX_EXTENSION_BYTES:
            raise ValueError(
                f"the header at byte {at - BLOCK} has {info.size:,} bytes of extensions, "
                f"more than {MAX_EXTENSION_BYTES:,}"
            )
        if info.type == b"L":
            said.setdefault("path", _text(window.read(at, info.size).rstrip(b"\0")))
        elif info.type in (b"x", b"X"):
            said.update(_pax(window.read(at, info.size), at))
        at += padded(info.size)
        info = headers.at(at)
    raise ValueError(f"the entry at byte {begin} has more than {_MAX_EXTENSIONS} headers")


def _entry(
    window: Window, place: tuple[int, int], info: TarInfo, said: dict[str, str]
) -> tuple[Entry | None, int]:
    begin, data = place
    if info.type == b"5":
        return None, data
    name = said.get("path", info.name).removeprefix("./")
    if len(name) > MAX_NAME:
        raise ValueError(f"the entry at byte {begin} has a name of {len(name):,} characters")
    size = _number(said["size"], begin) if "size" in said else info.size
    if info.type not in FILES and info.type in _KINDS and info.type != b"S":
        size = 0  # such headers may tell one, but nothing follows them
    if data + size > window.stop:
        raise EOFError(f"{name[:200]!r} at byte {begin} has {size:,} bytes, and the tar ends before")
    sparse = any(key.startswith("GNU.sparse") for key in said)
    problem = _problem(name, b"S" if sparse else info.type)
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    return Entry(shown, begin, data, size, problem), data + padded(size)


def _problem(name: str, kind: bytes) -> str | None:
    if kind not in FILES:
        return f"is {_KINDS.get(kind, f'an entry of the unknown type {kind!r}')}; only plain files are read"
    if name.startswith("/") or ".." in name.split("/"):
        return "has a name that leads out of the tar"
    if _UNFIT.search(name):
        return "has a name that is no plain UTF-8 text"
    return None


def padded(size: int) -> int:
    """The bytes that a payload takes in a tar."""
    return -(-size // BLOCK) * BLOCK


def _pax(data: bytes, at: int) -> dict[str, str]:
    """The `key=value` records of a pax header."""
    found: dict[str, str] = {}
    here = 0
    while here < len(data) and data[here]:
        match = _PAX.match(data, here)
        end = here + int(match[1]) if match else here
        if match is None or not match.end() < end <= len(data):
            raise ValueError(f"the pax header at byte {at} is damaged")
        found[_text(match[2])] = _text(data[match.end() : end - 1])
        here = end
    return found


def _number(text: str, begin: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"the entry at byte {begin} has the size {text[:40]!r}")
    return int(text)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _check_end(window: Window, at: int) -> None:
    """Behind the end mark there is padding; entries there (of joined tars) would be lost without a word."""
    behind = window.read(at, min(_MAX_PADDING, window.stop - at))
    if behind.strip(b"\0"):
        raise ValueError(
            f"there is more behind its end at byte {at}: were tars joined by cat? "
            "Unpack and pack it again, or name the tars one by one"
        )
