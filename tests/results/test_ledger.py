"""The ledger: what is durable, what remains, and shards made whole; on a disk and on an S3 server."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.results.dedup import Dedup
from pipeline.results.ledger import Ledger, Range, remaining
from pipeline.storage import Storage
from tests.conftest import S3Server

NOBODY = Dedup([])


@pytest.fixture(params=["disk", "s3"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "disk":
        return Ledger(Storage(), str(tmp_path / "recipe=r"), ("caption", "ocr"))
    server: S3Server = request.getfixturevalue("s3_server")
    return Ledger(server.storage, f"{server.make_bucket()}/out/recipe=r", ("caption", "ocr"))


def rows(start: int, stop: int, note: str = "") -> pa.Table:
    """Two result rows for each manifest row, out of order."""
    made = [
        {"row": r, "task": t, "status": "ok", "error_code": None, "text": f"{t} {r}{note}"}
        for r in range(start, stop)
        for t in ("ocr", "caption")
    ]
    random.Random(start).shuffle(made)
    return pa.Table.from_pylist(made)


def read(ledger: Ledger, shard: str) -> pa.Table:
    return pq.read_table(io.BytesIO(ledger.storage.read(ledger.shard_uri(shard))))


def test_a_shard_is_made_of_its_batches_in_order_and_replaces_them(ledger: Ledger) -> None:
    assert ledger.scan().shards == frozenset()
    for start, stop in ((10, 14), (4, 10), (14, 15)):
        ledger.put_batch("s", (start, stop), rows(start, stop))
    assert ledger.scan().batches == {"s": [(4, 10), (10, 14), (14, 15)]}
    assert ledger.finish("s", (4, 15), NOBODY).rows == 22
    table = read(ledger, "s")
    assert table["row"].to_pylist() == [r for r in range(4, 15) for _ in range(2)]
    assert table["task"].to_pylist() == ["caption", "ocr"] * 11
    assert table["text"].to_pylist()[:2] == ["caption 4", "ocr 4"]
    after = ledger.scan()
    assert (after.shards, after.batches, after.leftovers) == (frozenset({"s"}), {}, [])
    assert ledger.finish("s", (4, 15), NOBODY).rows == 22


def test_what_is_not_a_result_is_not_taken_for_one(ledger: Ledger) -> None:
    ledger.put_batch("s", (0, 2), rows(0, 2))
    names = [
        "_index/answers.parquet",
        "_x.parquet",
        ".retired/old.parquet",
        "deep/s2.parquet",
        "s3.parquet.tmp",
    ]
    for name in [*names, ".batches/s/.0-2.parquet.0a.tmp"]:
        ledger.storage.put(f"{ledger.folder}/{name}", b"")
    found = ledger.scan()
    assert (found.shards, found.batches, found.again) == (frozenset(), {"s": [(0, 2)]}, frozenset())


def test_a_gap_is_refused_and_nothing_is_lost(ledger: Ledger) -> None:
    for start, stop in ((0, 4), (6, 8)):
        ledger.put_batch("s", (start, stop), rows(start, stop))
    with pytest.raises(ValueError, match="12 of 16 rows"):
        ledger.finish("s", (0, 8), NOBODY)
    assert ledger.scan().batches == {"s": [(0, 4), (6, 8)]}
    assert ledger.scan().shards == frozenset()


def test_batches_cut_otherwise_never_double_a_row(ledger: Ledger) -> None:
    for start, stop in ((0, 4), (2, 6), (4, 8)):
        ledger.put_batch("s", (start, stop), rows(start, stop))
    assert ledger.finish("s", (0, 8), NOBODY).rows == 16
    assert read(ledger, "s")["row"].to_pylist() == [r for r in range(8) for _ in range(2)]


def test_a_crash_before_the_removal_leaves_leftovers_not_work(ledger: Ledger) -> None:
    ledger.put_batch("s", (0, 4), rows(0, 4))
    ledger.finish("s", (0, 4), NOBODY)
    ledger.put_batch("s", (0, 4), rows(0, 4))
    found = ledger.scan()
    assert found.shards == {"s"}
    assert found.batches == {}
    assert found.leftovers == [ledger.batch_uri("s", (0, 4))]


def test_a_shard_that_another_driver_finishes_meanwhile_is_finished(ledger: Ledger) -> None:
    for start, stop in ((0, 4), (4, 6)):
        ledger.put_batch("s", (start, stop), rows(start, stop))
    other = ledger

    class Slow(Ledger):
        def _read_all(self, uris: list[str]) -> list[pa.Table]:
            other.finish("s", (0, 6), NOBODY)
            return super()._read_all(uris)

    slow = Slow(ledger.storage, ledger.folder, ledger.tasks)
    assert slow.finish("s", (0, 6), NOBODY).rows == 12
    assert ledger.scan().batches == {}
    assert read(ledger, "s").num_rows == 12


def test_rows_done_again_stand_over_failed_ones_of_a_finished_shard(ledger: Ledger) -> None:
    failed = rows(0, 4).to_pylist()
    for row in failed:
        if row["row"] == 2 and row["task"] == "ocr":
            row |= {"status": "failed", "error_code": "fetch_failed", "text": None}
    schema = (
        rows(0, 4).schema.set(2, pa.field("status", pa.string())).set(3, pa.field("error_code", pa.string()))
    )
    ledger.put_batch("s", (0, 4), pa.Table.from_pylist(failed, schema))
    ledger.finish("s", (0, 4), NOBODY)
    uri = ledger.shard_uri("s")
    assert ledger.failed_rows(uri, (), ()) == [(2, "ocr")]
    assert ledger.failed_rows(uri, ("not_media",), ()) == ledger.failed_rows(uri, (), {(2, "ocr")}) == []
    ledger.put_batch("s", (2, 3), rows(2, 3, " again"), again=True)
    assert ledger.scan().again == {"s"}
    assert ledger.done_again("s") == {(2, "ocr"), (2, "caption")}
    assert ledger.finish("s", (0, 4), NOBODY).rows == 8
    texts = {(row["row"], row["task"]): row["text"] for row in read(ledger, "s").to_pylist()}
    assert texts[2, "ocr"] == "ocr 2 again"
    assert texts[1, "ocr"] == "ocr 1"
    assert (ledger.scan().again, ledger.failed_rows(uri, (), ())) == (frozenset(), [])


def test_other_readers_see_finished_shards_only(tmp_path: Path) -> None:
    import duckdb
    import pyarrow.dataset as ds

    ledger = Ledger(Storage(), str(tmp_path / "recipe=r"), ("caption", "ocr"))
    ledger.put_batch("open", (0, 4), rows(0, 4))
    ledger.put_batch("done", (0, 3), rows(0, 3))
    ledger.finish("done", (0, 3), NOBODY)
    ledger.storage.put(f"{ledger.folder}/_recipe.json", b"{}")
    assert ds.dataset(tmp_path, format="parquet").count_rows() == 6
    found = duckdb.sql(f"select count(*) from read_parquet('{tmp_path}/recipe=*/*.parquet')")
    assert found.fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("shard", "done", "size", "left"),
    [
        ((0, 10), [], 4, [(0, 4), (4, 8), (8, 10)]),
        ((100, 110), [(104, 108)], 4, [(100, 104), (108, 110)]),
        ((0, 10), [(0, 10)], 4, []),
        ((0, 10), [(0, 3), (7, 8)], 4, [(3, 4), (4, 7), (8, 10)]),
        ((0, 10), [(2, 6), (4, 9)], 100, [(0, 2), (9, 10)]),
        ((0, 10), [(0, 8), (2, 4)], 100, [(8, 10)]),
    ],
)
def test_remaining(shard: Range, done: list[Range], size: int, left: list[Range]) -> None:
    assert remaining(shard, done, size) == left


def test_remaining_and_done_cover_a_shard_exactly() -> None:
    random_numbers = random.Random(1)
    for _ in range(300):
        start, length = random_numbers.randrange(50), random_numbers.randrange(1, 60)
        edges = sorted(random_numbers.sample(range(start, start + length + 1), min(4, length + 1)))
        done = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False) if a < b]
        left = remaining((start, start + length), done, random_numbers.randrange(1, 20))
        covered = sorted(row for a, b in [*done, *left] for row in range(a, b))
        assert covered == list(range(start, start + length))
