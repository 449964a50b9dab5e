"""Windows: the bytes of a file, and in which pieces they are fetched."""

from __future__ import annotations

import io
import random

import pytest

from pipeline.manifest.tar_file import HeaderReads
from pipeline.manifest.window import Window

DATA = random.Random(0).randbytes(10_000)


class Source(io.BytesIO):
    """Remembers which pieces were read."""

    def __init__(self, data):
        super().__init__(data)
        self.pieces = []

    def read(self, size):
        self.pieces.append((self.tell(), size))
        return super().read(size)


@pytest.mark.parametrize("seed", range(20))
def test_a_window_gives_the_files_bytes_and_fetches_each_once(seed):
    chance = random.Random(seed)
    source = Source(DATA)
    stop = chance.randint(5000, 10_000)
    window = Window(source, 0, stop, lambda offset, skipped: chance.choice([1, 100, 2000]))
    offset = 0
    while (offset := offset + chance.choice([0, 0, 1, 50, 900])) < stop:
        count = min(chance.choice([0, 1, 30, 700]), stop - offset)
        assert window.read(offset, count) == DATA[offset : offset + count]
        offset += count
    ends = [0, *(begin + size for begin, size in source.pieces)]
    assert all(begin >= end for (begin, _), end in zip(source.pieces, ends, strict=False))
    assert ends[-1] <= stop


def test_behind_its_end_there_is_nothing():
    window = Window(io.BytesIO(DATA), 0, 100, lambda offset, skipped: 10)
    with pytest.raises(EOFError, match="bytes 90 to 101 are wanted, and it ends at byte 100"):
        window.read(90, 11)
    shrunk = Window(io.BytesIO(DATA[:50]), 0, 100, lambda offset, skipped: 10)
    with pytest.raises(EOFError, match="the file ends 10 bytes early"):
        shrunk.read(40, 20)


def requests(spans):
    """(requests, bytes) on the way through entries of these sizes, headers included."""
    source = Source(bytes(sum(spans)))
    window = Window(source, 0, sum(spans), HeaderReads())
    offset = 0
    for span in spans:
        window.read(offset, 512)
        offset += span
    return len(source.pieces), sum(size for _, size in source.pieces)


def test_headers_cost_a_twentieth_of_large_entries_and_small_ones_are_read_through():
    count, size = requests([20_480] * 1000)
    assert (count, size) == (1000, pytest.approx(20_480_000 / 21, rel=0.01))
    count, size = requests([204_800, 1024, 1024] * 300)
    assert 300 <= count <= 302
    assert size < 0.055 * 300 * 206_848
    count, size = requests([1024] * 10_000)
    assert count < 32 + 10_240_000 / (1 << 18) + 2
    count, size = requests([1024] * 500 + [100_000] * 500)
    assert size < 1024 * 500 + (1 << 18) + 0.06 * 100_000 * 500


def test_a_step_back_and_a_limit_are_kept_to():
    skips = []
    window = Window(io.BytesIO(DATA), 0, 10_000, lambda offset, skipped: skips.append(skipped) or 50)
    assert window.read(500, 10) == DATA[500:510]
    assert window.read(490, 20) == DATA[490:510]
    assert window.read(100, 10) == DATA[100:110]
    assert skips == [500, 0, 0]
    assert window.read_some(100, 10, 20) == DATA[100:120]
    assert window.read_some(140, 10, 20) == DATA[140:150]
