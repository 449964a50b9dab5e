"""Manifests that mean harm: opened and read in a child with little memory, they cost rows or are refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import REPOSITORY

CHILD = """
import json, resource, sys
from pipeline.config import ManifestConfig
from pipeline.errors import ConfigError
from pipeline.manifest import open_manifest, read, shards
from pipeline.storage import Storage

def now(what):
    status = open("/proc/self/status").read()
    return int(status.partition(what + ":")[2].split()[0]) << 10

uri, keep = sys.argv[1], sys.argv[2:]
resource.setrlimit(resource.RLIMIT_AS, (now("VmSize") + (2 << 30),) * 2)
before = now("VmRSS")
try:
    manifest = open_manifest(Storage(), ManifestConfig(uri=uri, keep=keep))
    shard = shards(manifest, 96)[0]
    ranges = [(start, min(start + 32, shard.stop)) for start in range(0, shard.stop, 32)]
    tables = [t.select(["row", "error"]) for t in read(Storage(), manifest.for_workers(), shard, ranges)]
    errors = [row["error"] for table in tables for row in table.to_pylist()]
    print(json.dumps({"errors": errors, "mib": (now("VmHWM") - before) >> 20}))
except ConfigError as error:
    print(json.dumps({"problems": error.problems, "mib": (now("VmHWM") - before) >> 20}))
"""


def read_in_child(path, *keep):
    """What became of the manifest, in a process that may take 2 GiB of addresses more than it has at first."""
    command = [sys.executable, "-c", CHILD, str(path), *keep]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_row_group_that_unpacks_a_thousandfold_is_not_unpacked(tmp_path):
    image = pa.array([bytes(160 << 20)] * 2, pa.large_binary())
    options = {"compression": "zstd", "use_dictionary": False}
    pq.write_table(pa.table({"image": image}), tmp_path / "m.parquet", **options)
    assert (tmp_path / "m.parquet").stat().st_size < 1 << 20
    found = read_in_child(tmp_path / "m.parquet")
    assert all("as of a decompression bomb" in error for error in found["errors"])
    assert len(found["errors"]) == 2
    assert found["mib"] < 100


def test_a_text_that_many_rows_share_is_held_once(tmp_path):
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * (1 << 20)]))
    pq.write_table(pa.table({"image": ["a"] * 1000, "question": shared}), tmp_path / "m.parquet")
    found = read_in_child(tmp_path / "m.parquet")
    assert found["errors"] == [None] * 96
    assert found["mib"] < 500
    texts = pa.array(["x" * (100 << 20), "q"])
    longer = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50, pa.int32()), texts)
    pq.write_table(pa.table({"image": ["a"] * 100, "question": longer}), tmp_path / "m.parquet")
    found = read_in_child(tmp_path / "m.parquet")
    assert found["errors"] == ["column 'question' has more than 1 MiB of text", None] * 48


@pytest.mark.parametrize("encoded", [True, False])
def test_a_cell_of_too_much_text_costs_its_row(tmp_path, encoded):
    texts = pa.array(["short", "x" * (20 << 20), None, "short"])
    table = pa.table({"image": ["a"] * 4, "note": texts.dictionary_encode() if encoded else texts})
    pq.write_table(table, tmp_path / "m.parquet", use_dictionary=encoded)
    found = read_in_child(tmp_path / "m.parquet", "note")
    assert found["errors"] == [None, "column 'note' has more than 16 MiB of text", None, None]


def test_damaged_pages_cost_their_row_group(opened, all_rows, tmp_path):
    table = pa.table({"image": [f"/{n}.jpg" for n in range(300)]})
    pq.write_table(table, tmp_path / "m.parquet", row_group_size=100, compression="zstd", use_dictionary=False)
    column = pq.ParquetFile(tmp_path / "m.parquet").metadata.row_group(1).column(0)
    data = bytearray((tmp_path / "m.parquet").read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 30 : end] = bytes(30)
    (tmp_path / "m.parquet").write_bytes(data)
    for seed in range(4):
        rows = all_rows(opened(tmp_path / "m.parquet", keep=["image"]), seed)
        assert [row["error"] is None for row in rows] == [True] * 100 + [False] * 100 + [True] * 100
        assert rows[150]["error"].startswith("row group 1 cannot be read: ")
        assert [row["keep"]["image"] for row in rows[:100]] == table["image"].to_pylist()[:100]


def test_a_store_that_fails_is_no_damage(opened, storage, tmp_path, monkeypatch):
    from pipeline.manifest import parquet_file, read, shards

    # More than the end of a file that is read for its footer.
    images = [f"/{number:0100d}.jpg" for number in range(2000)]
    pq.write_table(
        pa.table({"image": images}), tmp_path / "m.parquet", use_dictionary=False, compression="none"
    )
    manifest = opened(tmp_path / "m.parquet")
    failed = []

    class Failing(parquet_file.Watched):
        """Reads the footer, then no more."""

        def read(self, size=-1):
            if self.tell() < 100:
                self.failed = True
                failed.append(self.tell())
                raise ConnectionError("gone")
            return super().read(size)

    monkeypatch.setattr(parquet_file, "Watched", Failing)
    with pytest.raises(ConnectionError, match="gone"):
        list(read(storage, manifest, shards(manifest, 10)[0], [(0, 10)]))
    assert failed == [4]  # as the rows were read, not the footer behind them


def test_a_lack_of_memory_costs_the_row_group(opened, all_rows, tmp_path, monkeypatch):
    from pipeline.manifest import parquet_file

    pq.write_table(pa.table({"image": ["/a.jpg"] * 4}), tmp_path / "m.parquet", row_group_size=2)
    manifest = opened(tmp_path / "m.parquet")
    group = parquet_file._group

    def short(source, metadata, number, *others):
        if number == 0:
            raise MemoryError
        yield from group(source, metadata, number, *others)

    monkeypatch.setattr(parquet_file, "_group", short)
    errors = [row["error"] for row in all_rows(manifest)]
    assert errors == ["row group 0 cannot be read: MemoryError"] * 2 + [None] * 2


def test_the_pages_before_damage_are_read(opened, storage, tmp_path):
    from pipeline.manifest import read, shards

    table = pa.table({"image": [f"/{n:04d}.jpg" for n in range(600)]})
    options = {"compression": "none", "use_dictionary": False, "data_page_size": 100, "write_batch_size": 10}
    pq.write_table(table, tmp_path / "m.parquet", row_group_size=300, **options)
    column = pq.ParquetFile(tmp_path / "m.parquet").metadata.row_group(0).column(0)
    data = bytearray((tmp_path / "m.parquet").read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 300 : end] = b"\xff" * 300
    (tmp_path / "m.parquet").write_bytes(data)
    manifest = opened(tmp_path / "m.parquet")
    ranges = [(start, start + 10) for start in range(0, 600, 10)]
    tables = list(read(storage, manifest.for_workers(), shards(manifest, 600)[0], ranges))
    rows = [row for table in tables for row in table.to_pylist()]
    good = [row["error"] is None for row in rows]
    broken = good.count(False)
    assert 10 <= broken < 100
    assert good == [True] * (300 - broken) + [False] * broken + [True] * 300
    assert [row["images"][0]["uri"] for row in rows if row["error"] is None] == [
        f"/{n:04d}.jpg" for n in range(600) if good[n]
    ]


def test_what_is_a_bomb(opened, all_rows, tmp_path, monkeypatch):
    from pipeline.manifest import parquet_file

    # 100 kB that hardly unpack to more, and 1 MB of which next to nothing is stored.
    noise, blank = [f"/{n * 7919:0100d}.jpg" for n in range(1000)], [" " * 1000 + str(n) for n in range(1000)]
    options = {"compression": "zstd", "use_dictionary": False}
    pq.write_table(pa.table({"image": noise, "blank": blank}), tmp_path / "m.parquet", **options)
    monkeypatch.setattr(parquet_file, "BOMB_BYTES", 2000)
    monkeypatch.setattr(parquet_file, "BOMB_RATIO", 60)
    alone, both = opened(tmp_path / "m.parquet"), opened(tmp_path / "m.parquet", keep=["blank"])
    assert {row["error"] for row in all_rows(alone)} == {None}
    monkeypatch.setattr(parquet_file, "BOMB_RATIO", 20)
    (error,) = {row["error"] for row in all_rows(both)}
    assert "as of a decompression bomb" in error
    monkeypatch.setattr(parquet_file, "BOMB_BYTES", 2 << 20)
    assert {row["error"] for row in all_rows(both)} == {None}


def test_a_footer_cannot_claim_any_number_of_rows(tmp_path):
    pq.write_table(pa.table({"image": ["/a.jpg"] * 1000}), tmp_path / "m.parquet")
    data = (tmp_path / "m.parquet").read_bytes()
    thousand, billions = b"\xd0\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    claimed = data[footer:-8].replace(thousand, billions)
    assert claimed != data[footer:-8]
    size = len(claimed).to_bytes(4, "little")
    (tmp_path / "m.parquet").write_bytes(data[:footer] + claimed + size + data[-4:])
    (only,) = read_in_child(tmp_path / "m.parquet")["problems"]
    assert "its footer speaks of" in only or "cannot be read as parquet" in only


def test_ten_thousands_of_columns_are_refused(tmp_path):
    names = [f"c{number}" for number in range(10_001)]
    (tmp_path / "m.csv").write_text(",".join(["image", *names]) + "\n" + ",".join("x" * 10_002) + "\n")
    (tmp_path / "n.jsonl").write_text(json.dumps(dict.fromkeys(["image", *names], 1)) + "\n")
    for name in ("m.csv", "n.jsonl"):
        (only,) = read_in_child(tmp_path / name)["problems"]
        assert "columns, more than 10,000" in only


def test_lines_that_mean_harm_cost_themselves(tmp_path):
    lines = [
        b'{"image": "a.jpg"}',
        b'{"image": "' + b"x" * (100 << 20) + b'"}',
        b'{"image": ' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        b'{"image": "nul\\u0000.jpg", "image": "last.jpg"}',
        b'{"image": ' + b"9" * 10_000 + b"}",
        b"\0" * 100,
        b'{"image": "\xff"}',
        b'{"image": "z.jpg"}',
    ]
    (tmp_path / "m.jsonl").write_bytes(b"\n".join(lines))
    found = read_in_child(tmp_path / "m.jsonl")
    assert [error is None for error in found["errors"]] == [True, False, False, True, False, False, False, True]
    assert found["mib"] < 300
