"""Manifests on an S3 server over HTTP."""

from __future__ import annotations

from random import Random, randbytes

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from s3fs.core import S3File

from pipeline.config import S3Config, StorageConfig
from pipeline.manifest import read, shards
from pipeline.storage import Storage
from tests.manifest.tars import python_tar


@pytest.fixture(scope="module")
def server():
    server = ThreadedMotoServer(port=0)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def storage(server):
    s3 = S3Config(endpoint_url=server, access_key_id="k", secret_access_key="s", region="eu-central-1")
    storage = Storage(StorageConfig(s3=s3))
    fs, _ = storage.filesystem("s3://bucket/x")
    fs.mkdir("bucket")
    yield storage
    fs.rm("bucket", recursive=True)
    fsspec.filesystem("s3").clear_instance_cache()


@pytest.fixture
def fetched(monkeypatch):
    """The sizes of all requests for a part of a file."""
    sizes = []
    fetch = S3File._fetch_range

    def counted(self, start, end):
        sizes.append(end - start)
        return fetch(self, start, end)

    monkeypatch.setattr(S3File, "_fetch_range", counted)
    return sizes


def test_a_shard_of_text_fetches_its_own_bytes(opened, all_rows, storage, fetched):
    fs, _ = storage.filesystem("s3://bucket/x")
    for name, text in (("m.csv", "image\n" + "/x\n" * 5120), ("m.jsonl", '{"image": "/x"}\n' * 5120)):
        fs.pipe(f"bucket/{name}", text.encode())
        manifest = opened(f"s3://bucket/{name}")
        fetched.clear()
        assert len(all_rows(manifest, shard_rows=512)) == 5120
        assert len(fetched) == 10
        assert sum(fetched) == len(text.removeprefix("image\n"))


def test_text_and_a_changed_file(opened, all_rows, storage, problems):
    fs, _ = storage.filesystem("s3://bucket/x")
    fs.pipe("bucket/in/a/m.jsonl", b"".join(b'{"image": "../p/%d.jpg"}\n' % i for i in range(1000)))
    for uri in ("s3://bucket/in", "s3://bucket/in/", "s3://bucket/in/a/m.jsonl", "s3://bucket/in/*/*.jsonl"):
        manifest = opened(uri)
        assert [file.uri for file in manifest.files] == ["s3://bucket/in/a/m.jsonl"]
        uris = [row["images"][0]["uri"] for row in all_rows(manifest)]
        assert uris == [f"s3://bucket/in/p/{i}.jpg" for i in range(1000)]
    assert problems("s3://bucket/no.csv") == ["manifest.uri: s3://bucket/no.csv does not exist"]


def test_parquet(opened, all_rows, storage, fetched):
    table = pa.table(
        {"image": [b"%d" % i for i in range(500)], "other": [randbytes(10_000) for _ in range(500)]}
    )
    with storage.filesystem("s3://bucket/x")[0].open("bucket/m.parquet", "wb") as file:
        pq.write_table(table, file, row_group_size=100)
    rows = all_rows(opened("s3://bucket/m.parquet"), shard_rows=500)
    assert [row["images"][0]["data"] for row in rows] == table["image"].to_pylist()
    assert 5_000 < sum(fetched) < 500_000


def test_a_media_folder(opened, all_rows, storage):
    fs, _ = storage.filesystem("s3://bucket/x")
    fs.pipe({"bucket/p/b c%20.jpg": b"1", "bucket/p/a/d.mp4": b"2", "bucket/p/x.txt": b"3"})
    manifest = opened("s3://bucket/p/")
    before = manifest.files[0].fingerprint
    assert [(row["id"], [m["uri"] for m in row["images"] + row["videos"]]) for row in all_rows(manifest)] == [
        ("a/d.mp4", ["s3://bucket/p/a/d.mp4"]),
        ("b c%20.jpg", ["s3://bucket/p/b c%20.jpg"]),
    ]
    assert opened("s3://bucket/p").files[0].fingerprint == before
    fs.pipe("bucket/p/a/d.mp4", b"3")
    assert opened("s3://bucket/p").files[0].fingerprint != before


def test_tars_are_read_once_planning_included(opened, all_rows, storage, fetched):
    noise = Random(0)
    expected = {f"{n:04d}": noise.randbytes(noise.randint(8_000, 40_000)) for n in range(400)}
    fs, _ = storage.filesystem("s3://bucket/x")
    total = 0
    for tar in range(2):
        members = {f"{k}.jpg": v for k, v in list(expected.items())[tar * 200 : tar * 200 + 200]}
        texts = {name.replace("jpg", "json"): b'{"caption": "c"}' for name in members}
        data = python_tar(dict(sorted((members | texts).items())))
        fs.pipe(f"bucket/{tar:05d}.tar", data)
        total += len(data)
    manifest = opened("s3://bucket/{00000..00001}.tar", keep=["json.caption"])
    planned, requests = sum(fetched), len(fetched)
    assert planned < 0.08 * total
    assert requests < 2 * 400 + 40
    fetched.clear()
    rows = all_rows(manifest, shard_rows=128)
    assert {row["id"]: row["images"][0]["data"] for row in rows} == expected
    assert {row["keep"]["json.caption"] for row in rows} == {"c"}
    assert planned + sum(fetched) < 1.08 * total


def test_a_range_of_a_tar_is_one_request_of_its_own_bytes(opened, storage, fetched):
    fs, _ = storage.filesystem("s3://bucket/x")
    fs.pipe("bucket/m.tar", python_tar({f"{n:03d}.jpg": bytes(5120) for n in range(100)}))
    manifest = opened("s3://bucket/m.tar")
    (shard,) = shards(manifest, 100)
    fetched.clear()
    tables = list(read(storage, manifest.for_workers(), shard, [(10, 20), (20, 30), (50, 51)]))
    assert [table.num_rows for table in tables] == [10, 10, 1]
    assert fetched == [20 * (5120 + 512), 5120 + 512]
