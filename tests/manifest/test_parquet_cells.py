"""Cells: texts above a limit are left out, whichever way Arrow holds them, and told in their rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.manifest.parquet_cells import Broken, _bounded

CHUNKS = [["ab", None, "abcd"], ["abcde", "abc"]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_above_the_limit_are_left_out_of_every_chunk(kind):
    chunks = [pa.array(texts).cast(kind) for texts in CHUNKS]
    troubles = [[] for _ in range(5)]
    left = _bounded(pa.table({"c": pa.chunked_array(chunks)}), "c", troubles, 3)
    assert left.type == kind
    assert left.to_pylist() == ["ab", None, None, None, "abc"]
    too_long = ["column 'c' has more than 0 MiB of text"]
    assert troubles == [[], [], too_long, too_long, []]


def test_broken_rows_are_cut_like_others():
    part = Broken(10, "why").slice(3, 4)
    assert (part.num_rows, part.reason) == (4, "why")
