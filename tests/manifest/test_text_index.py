"""The sparse index of a text file."""

from __future__ import annotations

import io

from pipeline.manifest import text_index
from pipeline.manifest.records import records
from pipeline.manifest.text_index import index_records


def index(data: bytes, first: int = 0, sample_bytes: int = 0):
    sample: list[bytes] = []
    found = records(io.BytesIO(data), first, len(data))
    return *index_records(found, first, len(data), sample, sample_bytes), sample


def test_every_stride_th_row_has_its_offset(monkeypatch):
    monkeypatch.setattr(text_index, "FIRST_STRIDE", 2)
    rows, offsets, _ = index(b"BOM" + b"12345\n" * 5, first=3)
    assert (rows, offsets.stride, offsets.starts.to_pylist(), offsets.size) == (5, 2, [3, 15, 27], 33)


def test_the_index_stays_small_and_right(monkeypatch):
    monkeypatch.setattr(text_index, "FIRST_STRIDE", 1)
    monkeypatch.setattr(text_index, "MAX_OFFSETS", 8)
    lines = [b"%d\n" % number for number in range(1000)]
    rows, offsets, _ = index(b"".join(lines))
    assert (rows, offsets.stride, len(offsets.starts)) == (1000, 128, 8)
    assert offsets.starts.to_pylist() == [len(b"".join(lines[: i * 128])) for i in range(8)]


def test_the_sample_has_the_first_record_even_if_it_is_long():
    assert index(b"123\n456\n789\n", sample_bytes=8)[2] == [b"123", b"456"]
    assert index(b"123456789\n1\n", sample_bytes=4)[2] == [b"123456789"]
