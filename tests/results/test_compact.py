"""Compaction: the same rows in few files, for every reader, in generations that never disturb one."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError, OutputTakenError
from pipeline.results import part_writer
from pipeline.results.compact import Generation, compact, sweep
from pipeline.results.recipe_files import list_recipes
from pipeline.storage import Storage
from tests.conftest import S3Server
from tests.results.recipe_folder import RecipeFolder, ok, table, third_fails

SHARD_ROWS, SHARDS = 50, 12


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> RecipeFolder:
    """A finished recipe of 600 rows, with some that do not compress."""
    if request.param == "disk":
        made = RecipeFolder(Storage(), str(tmp_path / "out"), SHARD_ROWS * SHARDS, SHARD_ROWS)
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        output = f"{server.make_bucket()}/out"
        made = RecipeFolder(server.storage, output, SHARD_ROWS * SHARDS, SHARD_ROWS)
    noise = random.Random(3)

    def noisy(row: int) -> dict[str, Any]:
        found = third_fails(row)
        return {**found, "text": noise.randbytes(500).hex()} if found["status"] == "ok" else found

    made.begin()
    made.finish(range(SHARDS), noisy)
    return made


def compacted(
    folder: RecipeFolder, target_bytes: int = 10**9, check: Callable[[], None] = lambda: None
) -> Generation:
    (recipe,) = list_recipes(folder.storage, folder.output)
    return compact(folder.storage, folder.output, recipe, target_bytes, check)


def parts(folder: RecipeFolder, generation: Generation) -> list[pq.ParquetFile]:
    files = folder.storage.glob(f"{generation.folder}/*.parquet")
    return [pq.ParquetFile(io.BytesIO(folder.storage.read(file.uri))) for file in files]


def shards(folder: RecipeFolder) -> pa.Table:
    names = [folder.shard(number)[0] for number in range(SHARDS)]
    files = [folder.storage.read(folder.ledger.shard_uri(name)) for name in names]
    return pa.concat_tables([pq.read_table(io.BytesIO(data)) for data in files])


def test_rows_order_schema_and_lineage_stay(folder: RecipeFolder) -> None:
    before = shards(folder)
    made = compacted(folder)
    (part,) = parts(folder, made)
    after = part.read()
    assert after.equals(before)
    assert after["row"].to_pylist() == list(range(600))
    assert after.schema.equals(before.schema, check_metadata=True)
    assert part.metadata.row_group(0).column(0).compression == "ZSTD"
    assert part.num_row_groups == 1
    assert (made.parts, made.rows, made.is_new) == (1, 600, True)
    assert shards(folder).equals(before)


def test_files_have_the_target_size_and_groups_the_size_that_is_held(
    folder: RecipeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 400 answers of 1,000 letters, 500 bytes compressed: 200 kB and a little in all.
    monkeypatch.setattr(part_writer, "GROUP_BYTES", 20_000)
    made = compacted(folder, target_bytes=50_000)
    found = parts(folder, made)
    sizes = [file.size for file in folder.storage.glob(f"{made.folder}/*.parquet")]
    assert made.parts == len(found) >= 3
    assert all(50_000 <= size < 90_000 for size in sizes[:-1])
    assert pa.concat_tables([part.read() for part in found]).equals(shards(folder))
    groups = [part.metadata.row_group(n) for part in found for n in range(part.num_row_groups)]
    assert max(group.num_rows for group in groups) <= 100


def test_every_reader_finds_the_same_rows(tmp_path: Path) -> None:
    folder = RecipeFolder(Storage(), str(tmp_path / "out"), 600, 50)
    folder.begin()
    folder.finish(range(12), third_fails)
    made = compacted(folder)
    rows = f"{folder.output}/recipe=r1"
    old = duckdb.sql(f"select * from read_parquet('{rows}/*.parquet') order by row").fetchall()
    new = duckdb.sql(f"select * from read_parquet('{made.folder}/*.parquet')").fetchall()
    assert new == old
    assert len(new) == 600
    frame = pd.concat([pd.read_parquet(path) for path in sorted(Path(rows).glob("*.parquet"))])
    pd.testing.assert_frame_equal(
        pd.read_parquet(Path(made.folder) / "part-00000.parquet"), frame.reset_index(drop=True)
    )
    assert ds.dataset(made.folder, format="parquet").to_table().equals(ds.dataset(rows).to_table())
    # Who reads the whole output sees each row once, as before.
    assert ds.dataset(folder.output, format="parquet").count_rows() == 600
    glob = f"{folder.output}/recipe=*/*.parquet"
    assert duckdb.sql(f"select count(*) from read_parquet('{glob}')").fetchall() == [(600,)]


def test_the_same_again_makes_nothing_and_a_changed_shard_makes_a_new_one(folder: RecipeFolder) -> None:
    first = compacted(folder)
    again = compacted(folder)
    assert (again.folder, again.parts, again.rows, again.is_new) == (first.folder, 1, 600, False)
    assert compacted(folder, target_bytes=10**8).is_new
    before = parts(folder, first)[0].read()
    folder.finish([0], ok)
    last = compacted(folder)
    assert last.is_new
    assert parts(folder, last)[0].read().equals(shards(folder))
    assert parts(folder, first)[0].read().equals(before)


@pytest.mark.parametrize("lack", ["open shard", "missing shard", "retries", "no record"])
def test_what_is_not_finished_is_refused_with_the_cure(tmp_path: Path, lack: str) -> None:
    folder = RecipeFolder(Storage(), str(tmp_path / "out"), 30, 10)
    if lack != "no record":
        folder.begin()
    folder.finish([0, 1], ok)
    if lack == "open shard":
        folder.put_batch(2, (20, 25), ok)
    if lack in ("retries", "no record"):
        folder.finish([2], ok)
    if lack == "retries":
        folder.storage.put(f"{folder.ledger.folder}/.retries/{folder.shard(0)[0]}/0-1.parquet", b"x")
    told = {
        "open shard": "has 1 open shards",
        "missing shard": "has 20 of 30 rows",
        "retries": "has retried rows",
        "no record": "does not say how many rows",
    }
    with pytest.raises(ConfigError, match=f"{told[lack]}.*framescribe run --config"):
        compacted(folder)
    assert not Path(f"{folder.output}/_compact").exists()


def test_shards_of_an_older_version_get_the_newer_columns_empty(tmp_path: Path) -> None:
    folder = RecipeFolder(Storage(), str(tmp_path / "out"), 20, 10)
    folder.begin()
    old, new = table(range(10), ok), table(range(10, 20), ok)
    lineage = {**new.schema.metadata, b"framescribe.versions": b'{"framescribe": "9"}'}
    new = new.append_column("language", pa.array(["en"] * 10)).replace_schema_metadata(lineage)
    for number, rows in ((0, old), (1, new)):
        folder.put_shard(number, rows)
    (part,) = parts(folder, compacted(folder))
    after = part.read()
    assert after["language"].to_pylist() == [None] * 10 + ["en"] * 10
    assert after["row"].to_pylist() == list(range(20))
    versions = json.loads(after.schema.metadata[b"framescribe.all_versions"])
    assert versions == [json.loads(old.schema.metadata[b"framescribe.versions"]), {"framescribe": "9"}]


def test_a_compaction_that_stops_half_way_counts_for_nobody_and_is_swept(folder: RecipeFolder) -> None:
    calls = iter([True] * 5)

    def lost_after_five() -> None:
        if not next(calls, False):
            raise OutputTakenError("lost")

    with pytest.raises(OutputTakenError):
        compacted(folder, check=lost_after_five)
    assert not [file for file in folder.storage.find(f"{folder.output}/_compact") if "complete" in file.uri]
    folder.storage.put(f"{folder.output}/_compact/recipe=r1/20200101T000000.000000Z/part-00000.parquet", b"x")
    made = compacted(folder)
    assert made.is_new
    removed = sweep(folder.storage, folder.output, "r1", keep_days=7)
    assert f"{folder.output}/_compact/recipe=r1/20200101T000000.000000Z" in removed
    left = {file.uri.rpartition("/")[0] for file in folder.storage.find(f"{folder.output}/_compact")}
    assert left == {made.folder}


def test_a_generation_stays_for_days_after_a_newer_one_replaced_it(folder: RecipeFolder) -> None:
    home = f"{folder.output}/_compact/recipe=r1"

    def made(days_ago: float) -> str:
        stamp = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y%m%dT%H%M%S.%fZ")
        for name in ("part-00000.parquet", "_complete.json"):
            folder.storage.put(f"{home}/{stamp}/{name}", b"{}")
        return f"{home}/{stamp}"

    long_gone, just_replaced, newest = made(30), made(20), made(6.9)
    assert sweep(folder.storage, folder.output, "r1", keep_days=7) == [long_gone]
    assert sweep(folder.storage, folder.output, "r1", keep_days=6.8) == [just_replaced]
    assert sweep(folder.storage, folder.output, "r1", keep_days=0.001) == []
    assert folder.storage.read(f"{newest}/_complete.json") == b"{}"
    assert sorted({file.uri.rpartition("/")[0] for file in folder.storage.find(home)}) == [newest]
