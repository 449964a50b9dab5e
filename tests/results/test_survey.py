"""The survey: rows counted from files of every state, on a disk and on S3, also while they change."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.results.recipe_files import list_recipes
from pipeline.results.survey import WHOLE_BYTES, Counts, retried_rows, survey
from pipeline.storage import Storage
from tests.conftest import S3Server
from tests.results.recipe_folder import RecipeFolder, ok, table, third_fails


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> RecipeFolder:
    """20 rows in shards of 8."""
    if request.param == "disk":
        return RecipeFolder(Storage(), str(tmp_path / "out"), 20, 8)
    server: S3Server = request.getfixturevalue("s3_server")
    return RecipeFolder(server.storage, f"{server.make_bucket()}/out", 20, 8)


def counted(folder: RecipeFolder) -> Counts:
    (recipe,) = list_recipes(folder.storage, folder.output)
    return survey(folder.storage, recipe)


def waits(row: int) -> dict[str, Any]:
    """A row whose answer an equal one is to bring, as status says or leaves open."""
    return {"status": "waiting" if row % 2 else None}


def test_finished_shards_and_batches_of_open_ones_are_counted_once(folder: RecipeFolder) -> None:
    folder.begin()
    folder.finish([0], third_fails)
    folder.put_batch(1, (8, 12), third_fails)
    folder.put_batch(2, (16, 20), waits)
    found = counted(folder)
    # Of rows 0 to 11, 0 and 6 are not found, 3 and 9 too large; 16 to 19 wait.
    assert (found.ok, found.waiting, found.failed) == (8, 4, {"fetch_not_found": 2, "too_large": 2})
    assert found.durable == 16
    assert {code: (one.id, one.reason) for code, one in found.samples.items()} == {
        "fetch_not_found": ("item-0", "row 0 is bad"),
        "too_large": ("item-3", "row 3 is bad"),
    }


def test_leftovers_and_overlapping_batches_are_not_counted_twice(folder: RecipeFolder) -> None:
    folder.finish([0], ok)
    folder.put_batch(0, (0, 8), ok)
    for rows in ((8, 12), (9, 11), (10, 16)):
        folder.put_batch(1, rows, third_fails)
    found = counted(folder)
    assert (found.ok, found.failed) == (8 + 5, {"too_large": 2, "fetch_not_found": 1})


def test_large_files_are_never_read_whole(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RecipeFolder(s3_server.storage, f"{s3_server.make_bucket()}/out", 3000, 3000)
    noise = random.Random(1)
    folder.finish([0], lambda row: {**third_fails(row), "text": noise.randbytes(700).hex()})
    (recipe,) = list_recipes(folder.storage, folder.output)
    assert recipe.shards[folder.shard(0)[0]].size > WHOLE_BYTES
    monkeypatch.setattr(Storage, "read", lambda self, uri: pytest.fail(f"{uri} was read whole"))
    assert survey(folder.storage, recipe).failed == {"fetch_not_found": 500, "too_large": 500}


def test_retries_that_are_not_merged_are_told(folder: RecipeFolder) -> None:
    folder.finish([0], third_fails)
    name = folder.shard(0)[0]
    kept = folder.ledger
    kept.put_batch(name, (0, 8), table([0, 3], ok))
    data = folder.storage.read(kept.batch_uri(name, (0, 8)))
    folder.storage.put(f"{kept.folder}/.retries/{name}/0-1.parquet", data)
    (recipe,) = list_recipes(folder.storage, folder.output)
    assert retried_rows(folder.storage, recipe) == 2
    assert counted(folder).durable == 8
    folder.storage.remove([f"{kept.folder}/.retries/{name}/0-1.parquet"])
    assert retried_rows(folder.storage, recipe) == 0


def test_a_shard_finished_since_the_listing_is_counted(folder: RecipeFolder) -> None:
    for rows in ((0, 4), (4, 8)):
        folder.put_batch(0, rows, third_fails)
    (before,) = list_recipes(folder.storage, folder.output)
    folder.finish([0], third_fails)
    assert survey(folder.storage, before).failed == {"fetch_not_found": 2, "too_large": 1}


def test_counts_hold_while_a_run_goes_on(tmp_path: Path) -> None:
    folder = RecipeFolder(Storage(), str(tmp_path / "out"), 96, 8)
    folder.begin()
    folder.finish([0], third_fails)

    def go_on() -> None:
        for number in range(1, 12):
            start, stop = folder.shard(number)[1]
            for row in range(start, stop, 2):
                folder.put_batch(number, (row, row + 2), third_fails)
            folder.finish([number], third_fails)

    run = threading.Thread(target=go_on)
    run.start()
    seen = []
    while run.is_alive():
        seen.append(counted(folder))
    run.join()
    for found in seen:
        # A third of any run of rows fails, give or take one.
        assert abs(found.failed.total() * 3 - found.durable) <= 2
    assert [found.durable for found in seen] == sorted(found.durable for found in seen)
    assert counted(folder).failed == Counter({"fetch_not_found": 16, "too_large": 16})


def test_names_of_others_are_no_recipe(tmp_path: Path) -> None:
    folder = RecipeFolder(Storage(), str(tmp_path / "out"), 8, 8)
    folder.finish([0], ok)
    for name in ("_compact/recipe=r1/x/part-00000.parquet", "notes/recipe=r2/0-1.parquet", "recipe=r3"):
        folder.storage.put(f"{folder.output}/{name}", b"")
    assert [recipe.id for recipe in list_recipes(folder.storage, folder.output)] == ["r1"]
