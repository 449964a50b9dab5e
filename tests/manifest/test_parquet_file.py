"""Parquet: media in every shape, kept columns, and what is read of a file."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.manifest import parquet_file, read, shards
from pipeline.storage import Storage

HF_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def test_media_in_every_shape(opened, all_rows, tmp_path):
    table = pa.table(
        {
            "id": pa.array([1, 2, None], pa.uint32()),
            "image": pa.array([{"bytes": b"\xff", "path": "l.jpg"}, {"path": "a.jpg"}, None], HF_IMAGE),
            "images": pa.array([[b"1", None], None, []], pa.list_(pa.binary())),
            "video": pa.array([None, "s3://b/v.mp4", None], pa.large_string()),
            "question": pa.array(["q", None, "q"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "m.parquet")
    manifest = opened(tmp_path / "m.parquet")
    assert (manifest.has_images, manifest.has_videos) == (True, True)
    assert all_rows(manifest) == [
        {
            "row": 0,
            "id": "1",
            "images": [{"uri": "l.jpg", "data": b"\xff"}, {"uri": None, "data": b"1"}],
            "videos": [],
            "question": "q",
            "keep": {},
            "error": None,
        },
        {
            "row": 1,
            "id": "2",
            "images": [{"uri": f"{tmp_path}/a.jpg", "data": None}],
            "videos": [{"uri": "s3://b/v.mp4", "data": None}],
            "question": None,
            "keep": {},
            "error": None,
        },
        {
            "row": 2,
            "id": "m.parquet#2",
            "images": [],
            "videos": [],
            "question": "q",
            "keep": {},
            "error": None,
        },
    ]


def test_kept_columns_keep_their_types(opened, all_rows, storage, tmp_path):
    when = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    keep = {
        "t": pa.array([when], pa.timestamp("us", "UTC")),
        "d": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "a.b": pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int8())]))),
        "c": pa.array(["cat"]).dictionary_encode(),
    }
    pq.write_table(pa.table({"image": ["/x"], "a": [0], **keep}), tmp_path / "m.parquet")
    manifest = opened(tmp_path / "m.parquet", keep=["d", "t", "c", "a.b"])
    assert {field.name: str(field.type) for field in manifest.keep} == {
        "d": "decimal128(9, 2)",
        "t": "timestamp[us, tz=UTC]",
        "c": "string",
        "a.b": "list<element: struct<x: int8>>",
    }
    (row,) = all_rows(manifest)
    assert row["keep"] == {"d": Decimal("1.50"), "t": when, "c": "cat", "a.b": [{"x": 1}]}


def test_files_with_narrower_types_are_widened(opened, all_rows, tmp_path):
    types = [("1", pa.int32(), pa.string()), ("2", pa.int64(), pa.large_string()), ("3", pa.null(), pa.null())]
    for name, number, text in types:
        empty = pa.types.is_null(number)
        columns = {"w": pa.array([None if empty else 1], number), "s": pa.array([None if empty else "x"], text)}
        pq.write_table(pa.table({"image": ["/x"], **columns}), tmp_path / f"{name}.parquet")
    manifest = opened(tmp_path, keep=["w", "s"])
    assert str(manifest.keep.field("w").type) == "int64"
    kept = [row["keep"] for row in all_rows(manifest)]
    assert kept == [{"w": 1, "s": "x"}, {"w": 1, "s": "x"}, {"w": None, "s": None}]


def test_text_that_is_no_utf8_costs_its_row(opened, all_rows, tmp_path):
    raw = pa.array([b"/ok", b"/\xff\xfe", b"/ok"])
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"image": text, "note": text}), tmp_path / "m.parquet")
    rows = all_rows(opened(tmp_path / "m.parquet", keep=["note"]))
    assert [(row["error"], row["keep"]["note"]) for row in rows] == [
        (None, "/ok"),
        ("column 'image' has text that is no UTF-8; column 'note' has text that is no UTF-8", None),
        (None, "/ok"),
    ]


def test_wrong_types_are_refused(problems, tmp_path):
    table = pa.table({"id": [0.5], "image": [["/x"]], "video": [5], "question": [b"q"], "images": ["/ok"]})
    pq.write_table(table, tmp_path / "m.parquet")
    found = problems(tmp_path / "m.parquet")
    assert [problem.partition(":")[0] for problem in found] == [
        f"manifest.columns.{role}" for role in ("id", "image", "video", "question")
    ]
    assert "a list belongs in the role `images`" in found[1]


def test_kept_columns_that_cannot_be_unified_are_refused(problems, tmp_path):
    pq.write_table(pa.table({"image": ["/x"], "w": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"image": ["/x"], "w": ["1"]}), tmp_path / "2.parquet")
    (only,) = problems(tmp_path, keep=["w"])
    assert "int64 in 1.parquet; string in 2.parquet" in only


def test_what_is_no_parquet_is_refused_with_all_such_files(problems, tmp_path):
    (tmp_path / "1.parquet").write_bytes(b"not this")
    (tmp_path / "2.parquet").write_bytes(b"")
    pq.write_table(pa.table({"image": ["/x"]}), tmp_path / "3.parquet")
    found = problems(tmp_path, columns={"id": "key"})
    assert [p.split(" ")[1] for p in found[:2]] == [f"{tmp_path}/1.parquet", f"{tmp_path}/2.parquet"]
    assert found[2].startswith("manifest.columns.id: the manifest has no column 'key'")


class CountingStorage(Storage):
    """Counts the bytes that are read of any file."""

    count = 0

    def filesystem(self, uri):
        real, path = super().filesystem(uri)
        storage = type(self)

        class Counting(type(real)):
            cachable = False

            def _open(self, path, mode="rb", **options):
                file = super()._open(path, mode, **options)
                plain = file.read

                def counted(*size):
                    data = plain(*size)
                    storage.count += len(data)
                    return data

                file.read = counted
                return file

        return Counting(), path


def wide_file(path, groups=10, rows=100, width=10_000):
    noise = random.Random(0)
    table = pa.table(
        {
            "image": [f"/{i}" for i in range(groups * rows)],
            "blob": [noise.randbytes(width) for _ in range(groups * rows)],
        }
    )
    pq.write_table(table, path, row_group_size=rows, compression="none", write_batch_size=10)


def test_only_the_needed_columns_and_row_groups_are_read(opened, tmp_path):
    wide_file(tmp_path / "m.parquet")
    manifest = opened(tmp_path / "m.parquet")
    by_blob = opened(tmp_path / "m.parquet", columns={"image": "blob"})
    shard = shards(manifest, 100)[3]
    storage = CountingStorage()
    assert [t["id"][0].as_py() for t in read(storage, manifest, shard, [(300, 320), (350, 352)])] == [
        "m.parquet#300",
        "m.parquet#350",
    ]
    assert 0 < CountingStorage.count < 100_000
    CountingStorage.count = 0
    (table,) = read(storage, by_blob, shard, [(350, 352)])
    assert len(table["images"][1].as_py()[0]["data"]) == 10_000
    assert 1_000_000 < CountingStorage.count < 1_100_000


def test_a_large_row_group_is_read_in_pieces(opened, monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_file, "PREFETCH_BYTES", 1000)
    monkeypatch.setattr(parquet_file, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", 1 << 18)
    wide_file(tmp_path / "m.parquet", groups=1, rows=1000)
    manifest = opened(tmp_path / "m.parquet", columns={"image": "blob"})
    CountingStorage.count = 0
    tables = read(CountingStorage(), manifest, shards(manifest, 1000)[0], [(0, 30), (30, 60), (990, 1000)])
    next(tables)
    after_first = CountingStorage.count
    blobs = pq.read_table(tmp_path / "m.parquet")["blob"].to_pylist()
    assert [i["data"] for t in tables for r in t["images"].to_pylist() for i in r] == blobs[30:60] + blobs[990:]
    assert after_first < 2_000_000
    assert 10_000_000 < CountingStorage.count < 10_200_000


@pytest.mark.parametrize("seed", range(12))
def test_the_pieces_are_the_file(opened, all_rows, tmp_path, seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", chance.choice([1, 100, 1000, 1 << 25]))
    monkeypatch.setattr(parquet_file, "PREFETCH_BYTES", chance.choice([0, 1 << 28]))
    rows = chance.randint(1, 400)
    labels = pa.array([str(chance.randint(0, 9)) for _ in range(rows)]).dictionary_encode()
    table = pa.table({"image": [f"/{i}" for i in range(rows)], "label": labels})
    with pq.ParquetWriter(tmp_path / "m.parquet", table.schema) as writer:
        start = 0
        while start < rows:
            size = chance.choice([1, 7, 100, 900])
            writer.write_table(table.slice(start, size))
            start += size
    found = all_rows(opened(tmp_path / "m.parquet", keep=["label"]), seed)
    expected = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert [(row["row"], row["images"][0]["uri"], row["keep"]["label"]) for row in found] == [
        (number, row["image"], row["label"]) for number, row in enumerate(expected)
    ]


def test_batches_are_no_longer_than_a_range_and_share_texts(opened, monkeypatch, tmp_path):
    wide_file(tmp_path / "m.parquet", groups=1, rows=100)
    source = parquet_file.Watched((tmp_path / "m.parquet").open("rb"))

    def batches(column, ranges):
        found = list(parquet_file._batches(source, [column], ranges))
        assert sum(batch.num_rows for _, batch in found) == 100
        return found

    assert max(batch.num_rows for _, batch in batches("blob", [(0, 30), (50, 60)])) == 30
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", 90_000)  # of 10,000 bytes and a few each
    assert 7 <= max(batch.num_rows for _, batch in batches("blob", [(0, 100)])) <= 9
    assert {str(batch.schema.field("image").type) for _, batch in batches("image", [(0, 100)])} == {
        "dictionary<values=string, indices=int32, ordered=0>"
    }


def test_a_range_that_ends_with_a_row_group_reads_no_other(opened, tmp_path):
    wide_file(tmp_path / "m.parquet")
    manifest = opened(tmp_path / "m.parquet", columns={"image": "blob"})
    CountingStorage.count = 0
    (table,) = read(CountingStorage(), manifest, shards(manifest, 1000)[0], [(300, 400)])
    assert table.num_rows == 100
    assert 1_000_000 < CountingStorage.count < 1_100_000


def test_a_text_in_a_struct_has_its_limit_too(opened, all_rows, tmp_path):
    asked = [{"q": "why?"}, {"q": "x" * ((1 << 20) + 1)}, {"q": "y" * (1 << 20)}]
    pq.write_table(pa.table({"image": ["/a.jpg"] * 3, "m": asked}), tmp_path / "m.parquet")
    rows = all_rows(opened(tmp_path / "m.parquet", columns={"question": "m.q"}))
    assert [(row["question"], row["error"]) for row in rows] == [
        ("why?", None),
        (None, "column 'm.q' has more than 1 MiB of text"),
        ("y" * (1 << 20), None),
    ]
