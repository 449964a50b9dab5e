"""Footers that lie about rows, places and sizes: refused when the file is opened, or errors of their rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.manifest.footers import replace_in_footer
from tests.manifest.test_hostile_files import read_in_child

PLAIN = {
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}
SIZE, TOTAL = 29_677, 2345
FIRST_ROWS, FIRST_BYTES = 1234, 14_963
ROWS, BYTES, BEGIN = 1111, 14_474, 14_967
"""Of the second row group: the first one's bytes, behind the 4 of the magic number, end where it begins."""


@pytest.fixture
def path(tmp_path):
    """A file of two row groups, of whose footer each number is known."""
    path = tmp_path / "m.parquet"
    table = pa.table({"image": [f"/{row}.jpg" for row in range(TOTAL)]})
    pq.write_table(table, path, row_group_size=FIRST_ROWS, **PLAIN)
    assert path.stat().st_size == SIZE
    return path


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ((BYTES, 1 << 40, 4), "puts 1,099,511,627,776 bytes of column 'image' at byte 14,967"),
        ((BYTES, SIZE - BEGIN + 1, 4), "puts 14,711 bytes of column 'image' at byte 14,967"),
        ((BYTES, -5, 4), "puts -5 bytes of column 'image' at byte 14,967"),
        ((BEGIN, 1 << 40, 2), "puts 14,474 bytes of column 'image' at byte 1,099,511,627,776"),
        ((BEGIN, -7, 2), "puts 14,474 bytes of column 'image' at byte -7"),
        ((BEGIN, 3, 2), "puts 14,474 bytes of column 'image' at byte 3"),
        ((TOTAL, 5, 1), "speaks of 5 rows in 2 row groups of 2,345"),
        ((TOTAL, 1 << 40, 1), "speaks of 1,099,511,627,776 rows in 2 row groups of 2,345"),
        ((FIRST_ROWS, -1, 3), "speaks of 2,345 rows in 2 row groups of 1,110"),
    ],
)
def test_what_cannot_be_is_refused_when_the_file_is_opened(problems, path, lie, reason):
    replace_in_footer(path, *lie)
    (only,) = problems(path)
    assert only.startswith(f"manifest.uri: {path} cannot be read as parquet: its footer {reason}")
    assert ": write the file again" in only


def test_less_rows_than_none_are_refused(problems, path):
    replace_in_footer(path, FIRST_ROWS, -1, 3)
    replace_in_footer(path, TOTAL, ROWS - 1, 1)
    (only,) = problems(path)
    assert "its footer speaks of 1,110 rows in 2 row groups of 1,110; " in only


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (2_000_000_000, "speaks of 2,000,001,234 rows, and the file has 29,68"),
        ((1 << 31) - FIRST_ROWS + 1, "at most 2,147,483,648 are read of one file"),
    ],
)
def test_rows_without_end_are_refused_in_little_memory(path, rows, reason):
    replace_in_footer(path, ROWS, rows, 3)
    replace_in_footer(path, TOTAL, rows + FIRST_ROWS, 1)
    found = read_in_child(path)
    (only,) = found["problems"]
    assert reason in only
    assert "write the file again" in only
    assert found["mib"] < 100


def test_bytes_without_end_are_refused_in_little_memory(path):
    replace_in_footer(path, BYTES, 200 << 30, 4)
    found = read_in_child(path)
    (only,) = found["problems"]
    assert "puts 214,748,364,800 bytes of column 'image'" in only
    assert found["mib"] < 100


def test_less_values_than_rows_are_refused(problems, tmp_path):
    # 700 lists of two: 1400 values, by the chunk and in its histogram of levels.
    images = pa.array([["/a.jpg", "/b.jpg"]] * 700)
    pq.write_table(pa.table({"images": images}), tmp_path / "m.parquet", **PLAIN)
    replace_in_footer(tmp_path / "m.parquet", 1400, 699, 2)
    (only,) = problems(tmp_path / "m.parquet")
    assert "its footer speaks of 700 rows with 699 values in " in only
    assert "of column 'images.list.element': write the file again" in only


def test_rows_that_are_in_no_page_are_errors_and_move_no_others(opened, all_rows, path):
    replace_in_footer(path, FIRST_ROWS, 1300, 3)
    replace_in_footer(path, TOTAL, TOTAL + 66, 1)
    for seed in range(4):
        rows = all_rows(opened(path), seed)
        assert [row["images"][0]["uri"] for row in rows if row["images"]] == [f"/{n}.jpg" for n in range(TOTAL)]
        assert {row["row"]: row["error"] for row in rows if row["error"]} == dict.fromkeys(
            range(1234, 1300),
            "row group 0 cannot be read: 66 rows that its footer speaks of are not in its pages",
        )


def test_honest_footers_are_taken(opened, tmp_path):
    # The least that rows can take: one value in all of them, which a dictionary holds once.
    same = pa.DictionaryArray.from_arrays(pa.nulls(5_000_000, pa.int32()).fill_null(0), ["/a.jpg"])
    pq.write_table(pa.table({"image": same}), tmp_path / "same.parquet", compression="zstd")
    assert opened(tmp_path / "same.parquet").rows == 5_000_000
    schema = pa.schema([("image", pa.string())])
    with pq.ParquetWriter(tmp_path / "empty.parquet", schema) as writer:
        writer.write_table(schema.empty_table())
        writer.write_table(pa.table({"image": ["/a.jpg"]}))
    assert opened(tmp_path / "empty.parquet").rows == 1


def test_a_dictionary_is_a_part_of_its_chunk(opened, problems, tmp_path):
    # The dictionary is longer than the footer: from the data on, so many bytes would not be in the file.
    table = pa.table({"image": [f"/{n:0100d}.jpg" for n in range(1000)]})
    pq.write_table(table, tmp_path / "m.parquet", compression="zstd", store_schema=False)
    assert opened(tmp_path / "m.parquet").rows == 1000
    unpacked = pq.ParquetFile(tmp_path / "m.parquet").metadata.row_group(0).column(0).total_uncompressed_size
    assert unpacked > 100_000
    replace_in_footer(tmp_path / "m.parquet", unpacked, -8, 2)
    (only,) = problems(tmp_path / "m.parquet")
    assert "with 1,000 values in -8 bytes of column 'image': write the file again" in only
