"""Cutting a manifest into shards."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.manifest import shards


def cuts(found):
    return [(shard.file, shard.start, shard.stop) for shard in found]


@pytest.fixture
def two_files(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"image": "/x"}\n' * 5)
    (tmp_path / "b b.jsonl").write_text('{"image": "/x"}\n' * 2)
    return tmp_path


def test_each_file_is_cut_by_itself(opened, two_files):
    found = shards(opened(two_files), 2)
    assert cuts(found) == [(0, 0, 2), (0, 2, 4), (0, 4, 5), (1, 0, 2)]
    assert [shard.rows for shard in found] == [2, 2, 1, 2]


def test_names_are_unique_and_those_of_their_file(opened, two_files):
    names = [shard.name for shard in shards(opened(two_files), 2)]
    assert [name[-21:] for name in names] == [
        "0000000000-0000000002",
        "0000000002-0000000004",
        "0000000004-0000000005",
        "0000000000-0000000002",
    ]
    assert [name[: name.rindex("-", 0, -22)] for name in names] == ["a-jsonl"] * 3 + ["b-b-jsonl"]
    assert len({name[:-22] for name in names}) == 2
    assert names == sorted(names)
    assert names == [shard.name for shard in shards(opened(f"{two_files}/*.jsonl"), 2)]


def test_another_file_changes_no_name_and_a_change_all_of_its_file(opened, two_files):
    before = [shard.name for shard in shards(opened(two_files), 2)]
    (two_files / "a0.jsonl").write_text('{"image": "/x"}\n')
    assert {*before} < {shard.name for shard in shards(opened(two_files), 2)}
    with (two_files / "a.jsonl").open("a") as file:
        file.write('{"image": "/x"}\n')
    assert {*before} & {shard.name for shard in shards(opened(two_files), 2)} == {before[3]}


def parquet(path, *groups):
    with pq.ParquetWriter(path, pa.schema([("image", pa.string())])) as writer:
        for rows in groups:
            writer.write_table(pa.table({"image": ["/x"] * rows}))
    return path


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([3, 3, 3], [3, 3, 3]),
        ([2, 2, 2], [4, 2]),
        ([10, 1], [5, 5, 1]),
        ([7, 2, 6], [5, 4, 5, 1]),
        ([12], [5, 5, 2]),
        ([1, 1, 1, 1, 1, 1], [5, 1]),
    ],
)
def test_parquet_is_cut_where_row_groups_end(opened, tmp_path, groups, expected):
    manifest = opened(parquet(tmp_path / "m.parquet", *groups))
    found = shards(manifest, 5)
    assert [shard.rows for shard in found] == expected
    assert [shard.start for shard in found[1:]] == [shard.stop for shard in found[:-1]]
    assert found[-1].stop == manifest.rows


def test_a_shard_is_small_and_equal_after_pickling(opened, two_files):
    for shard in shards(opened(two_files), 2):
        assert pickle.loads(pickle.dumps(shard)) == shard  # noqa: S301
        assert len(pickle.dumps(shard)) < 500


def test_what_cannot_be_cut(opened, two_files):
    with pytest.raises(ValueError, match="at least one row"):
        shards(opened(two_files), 0)
    with pytest.raises(ValueError, match="without its index"):
        shards(opened(two_files).for_workers(), 5)
