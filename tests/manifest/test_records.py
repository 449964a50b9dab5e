"""Text files as records: where they end, whatever the block size."""

from __future__ import annotations

import csv
import io
import random
import tracemalloc

import pytest

from pipeline.manifest import records as module
from pipeline.manifest.records import UnclosedQuoteError, records, text_start


def split(data: bytes, delimiter: bytes | None = None, start: int = 0) -> list[bytes | None]:
    found = list(records(io.BytesIO(data), start, len(data), delimiter))
    assert [end for end, _ in found] == sorted({end for end, _ in found})
    return [record for _, record in found]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_lines(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    data = 'one\u2028still\x0b\x0cone\r\n\n  \t\r\ntwo\rtwo\n{"a":"\\n"}\n\nlast'.encode()
    assert split(data) == ["one\u2028still\x0b\x0cone\r".encode(), b"two\rtwo", b'{"a":"\\n"}', b"last"]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_csv_rows(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    rows = [b"h,i", b'"a\r\n\n""b,""",2', b'5" disk,x"y', b'"c"d"e,f', b' "no quote', b',""', b'"",""']
    assert split(b"\r\n".join(rows) + b"\n\r\n\n", b",") == [
        b"h,i\r",
        b'"a\r\n\n""b,""",2\r',
        b'5" disk,x"y\r',
        b'"c"d"e,f\r',
        b' "no quote\r',
        b',""\r',
        b'"",""',
    ]


def test_an_offset_is_where_the_next_record_begins():
    data = b'a,"1\n2"\n\nb,3\nc,4'
    (first, _), (second, _), (third, _) = records(io.BytesIO(data), 0, len(data), b",")
    assert data[first:] == b"\nb,3\nc,4"
    assert data[second:third] == b"c,4"
    assert split(data, b",", second) == [b"c,4"]


def test_any_text_is_cut_as_the_csv_module_reads_it(monkeypatch):
    chance = random.Random(1)
    agreed = 0
    for _ in range(4000):
        monkeypatch.setattr(module, "BLOCK_BYTES", chance.randint(1, 9))
        text = "".join(chance.choices('a",\n', k=chance.randint(1, 14)))
        expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        try:
            found = split(text.encode(), b",")
        except UnclosedQuoteError:
            with pytest.raises(csv.Error):
                list(csv.reader(io.StringIO(text, newline=""), strict=True))
            continue
        assert [next(csv.reader([record.decode()])) for record in found] == expected, text
        agreed += 1
    assert agreed > 2000


def test_a_quote_that_is_never_closed_is_told_with_its_place():
    with pytest.raises(UnclosedQuoteError, match="begins at byte 4 "):
        split(b'a,b\n1,"2\n3,4\n', b",")


def test_a_record_that_is_too_long_keeps_its_place(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 10)
    assert split(b"123456789\n12345678901\nshort\n123456789012") == [b"123456789", None, b"short", None]
    assert split(b'"1\n3\n5\n7\n9\n1"\nx', b",") == [None, b"x"]


def test_a_record_that_is_too_long_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 100_000)
    data = b"x" * 5_000_000 + b"\nshort"
    source = io.BytesIO(data)
    tracemalloc.start()
    try:
        found = [record for _, record in records(source, 0, len(data))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [None, b"short"]
    assert peak < 500_000


def test_a_file_that_has_become_shorter():
    with pytest.raises(EOFError):
        list(records(io.BytesIO(b"a\nb\n"), 0, 10))


def test_where_text_starts():
    assert text_start(io.BytesIO(b"\xef\xbb\xbfa")) == 3
    assert text_start(io.BytesIO(b"")) == 0
    with pytest.raises(ValueError, match="UTF-16"):
        text_start(io.BytesIO("a".encode("utf-16")))
