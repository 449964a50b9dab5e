"""Text files as records: a JSONL line, or a CSV row with its quoted newlines, each with where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import BinaryIO

BLOCK_BYTES = 1 << 20
MAX_RECORD_BYTES = 16 << 20
"""A longer record is passed by and comes as None, so that a broken file cannot fill the memory."""

_QUOTE = ord('"')


class UnclosedQuoteError(ValueError):
    """A quoted CSV field goes on to the end of the file: where rows end cannot be told."""


class _At(Enum):
    FIELD_START = auto()
    PLAIN = auto()
    QUOTED = auto()
    QUOTE_IN_QUOTED = auto()


class _Quotes:
    """Whether a CSV record goes on behind a newline. Quotes open at a field's start only, as `csv` reads."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        d = re.escape(delimiter)
        field = rb'(?:"[^"]*+(?:""[^"]*+)*+"|[^"%b][^%b]*+|)' % (d, d)
        self._closed = re.compile(rb"%b(?:%b%b)*+\r?" % (field, d, field))
        self._at = _At.FIELD_START

    def feed(self, piece: bytes, ended: bool) -> bool:
        """Take a piece without newlines, and whether a newline follows it; return: does the record go on?"""
        if not (ended and self._at is _At.FIELD_START and self._is_closed(piece)):
            self._scan(piece)
        if ended and not self.inside:
            self._at = _At.FIELD_START
        return self.inside

    @property
    def inside(self) -> bool:
        """Whether what comes next is inside of quotes."""
        return self._at is _At.QUOTED

    def _is_closed(self, piece: bytes) -> bool:
        """Whether a piece from a record's start is surely a whole record: the usual, told fast."""
        return b'"' not in piece or self._closed.fullmatch(piece) is not None

    def _scan(self, piece: bytes) -> None:
        here = 0
        while 0 <= here < len(piece):
            if self._at is _At.QUOTED:
                here = piece.find(b'"', here) + 1
                if here == 0:
                    return
                self._at = _At.QUOTE_IN_QUOTED
            elif self._at is _At.PLAIN:
                here = piece.find(self._delimiter, here) + 1
                if here == 0:
                    return
                self._at = _At.FIELD_START
            elif piece[here] == _QUOTE:
                self._at = _At.QUOTED
                here += 1
            else:
                self._at = _At.PLAIN


def text_start(source: BinaryIO) -> int:
    """The byte at which the text begins: behind a UTF-8 byte order mark if there is one.

    Raises:
        ValueError: the file is compressed or not UTF-8, with the cure.
    """
    source.seek(0)
    head = source.read(4)
    if head[:2] == b"\x1f\x8b" or head == b"\x28\xb5\x2f\xfd":
        raise ValueError("it is compressed in spite of its name; decompress it, or convert it to Parquet")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("it is UTF-16 text; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    return 3 if head[:3] == b"\xef\xbb\xbf" else 0


def records(
    source: BinaryIO, start: int, stop: int, delimiter: bytes | None = None
) -> Iterator[tuple[int, bytes | None]]:
    """Yield (offset behind the record, the record without its last newline) for the bytes [start, stop).

    With a `delimiter` records are CSV rows, else lines. Blank ones are skipped. `start` has to be the
    begin of a record. A record longer than MAX_RECORD_BYTES comes as None.

    Raises:
        UnclosedQuoteError: at the end, inside of quotes.
        EOFError: the file is shorter than `stop`.
    """
    quotes = _Quotes(delimiter) if delimiter else None
    pending = bytearray()
    size = 0
    begin = offset = start
    for piece, ended in _pieces(source, start, stop):
        offset += len(piece) + ended
        goes_on = quotes.feed(piece, ended) if quotes else False
        record: bytes | None = piece
        if not ended or goes_on or size:
            size += len(piece) + ended
            if size <= MAX_RECORD_BYTES:
                pending += piece + b"\n"[:ended]
            if not ended or goes_on:
                continue
            record = bytes(pending[:-1]) if size <= MAX_RECORD_BYTES else None
            pending.clear()
            size = 0
        if record is None or not _is_blank(record, delimiter):
            yield offset, record
        begin = offset
    if quotes and quotes.inside:
        raise UnclosedQuoteError(f"the record that begins at byte {begin} has a quote that is never closed")
    if size > MAX_RECORD_BYTES:
        yield offset, None
    elif not _is_blank(bytes(pending), delimiter):
        yield offset, bytes(pending)


def _pieces(source: BinaryIO, start: int, stop: int) -> Iterator[tuple[bytes, bool]]:
    source.seek(start)
    left = stop - start
    while left > 0:
        block = source.read(min(BLOCK_BYTES, left))
        if not block:
            raise EOFError(f"the file ends {left} bytes early: it has changed")
        left -= len(block)
        *lines, rest = block.split(b"\n")
        for line in lines:
            yield line, True
        if rest:
            yield rest, False


def _is_blank(record: bytes, delimiter: bytes | None) -> bool:
    return record in (b"", b"\r") if delimiter else not record.strip()
