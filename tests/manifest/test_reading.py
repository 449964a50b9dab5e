"""Reading ranges of a shard."""

from __future__ import annotations

import os

import pytest

from pipeline.errors import ConfigError
from pipeline.manifest import read, shards


@pytest.fixture
def path(tmp_path):
    (tmp_path / "m.jsonl").write_text("".join(f'{{"id": {i}, "image": "/{i}"}}\n' for i in range(2000)))
    return tmp_path / "m.jsonl"


def test_ranges_with_gaps(opened, storage, path):
    manifest = opened(path)
    shard = shards(manifest, 700)[1]
    tables = read(storage, manifest, shard, [(701, 703), (703, 704), (1398, 1400)])
    assert [table["id"].to_pylist() for table in tables] == [["701", "702"], ["703"], ["1398", "1399"]]
    assert list(read(storage, manifest, shard, [])) == []


@pytest.mark.parametrize("ranges", [[(5, 5)], [(5, 4)], [(9, 11)], [(0, 5), (4, 6)], [(5, 6), (0, 1)]])
def test_ranges_that_are_none(opened, storage, path, ranges):
    manifest = opened(path)
    with pytest.raises(ValueError, match="empty, out of order or outside"):
        list(read(storage, manifest, shards(manifest, 10)[0], ranges))


def test_a_shard_reads_no_more_than_its_part(opened, storage, path):
    manifest = opened(path)
    shard = shards(manifest, 256)[2]
    whole = path.read_bytes()
    begin, end = shard.seek.start, shard.seek.stop
    assert whole[begin:end].count(b"\n") == 256
    path.write_bytes(b"!" * begin + whole[begin:end] + b"!" * (len(whole) - end))
    info = os.stat(path)
    os.utime(path, (info.st_atime, float(manifest.files[0].fingerprint.partition(":")[2])))
    (table,) = read(storage, manifest, shard, [(shard.start, shard.stop)])
    assert table["id"].to_pylist() == [str(i) for i in range(512, 768)]
    assert table["error"].null_count == 256


def test_a_manifest_that_has_changed_is_not_read(opened, storage, path):
    manifest = opened(path)
    with path.open("a") as file:
        file.write('{"image": "/new"}\n')
    with pytest.raises(ConfigError, match="has changed since the run began"):
        list(read(storage, manifest, shards(manifest, 10)[0], [(0, 1)]))


def test_a_manifest_in_another_store(opened, all_rows, path):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bucket/in/m.csv", b"image\na b.jpg\n../c.jpg\n")
    memory.pipe_file("/bucket/pics/d.jpg", b"d")
    try:
        for uri in ("memory://bucket/in/m.csv", "memory://bucket/in/", "memory://bucket/*/*.csv"):
            manifest = opened(uri)
            assert [file.uri for file in manifest.files] == ["memory://bucket/in/m.csv"]
            uris = [row["images"][0]["uri"] for row in all_rows(manifest)]
            assert uris == ["memory://bucket/in/a b.jpg", "memory://bucket/c.jpg"]
        (row,) = all_rows(opened("memory://bucket/pics"))
        assert (row["id"], row["images"][0]["uri"]) == ("d.jpg", "memory://bucket/pics/d.jpg")
    finally:
        memory.rm("/bucket", recursive=True)
