"""Two engines on one node, two questions for each picture; one engine's core is killed on the way."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from pipeline.report import RunSummary
from pipeline.run import run
from tests.conftest import REPOSITORY
from tests.e2e.configurations import batch_files, quickstart, results

SAMPLE = REPOSITORY / "demo/dataset"


def pictures() -> list[dict[str, str]]:
    """Those of shapes, with their answers but without their question: the tasks ask."""
    lines = (SAMPLE / "manifest.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        {"id": row["id"], "image": str(SAMPLE / row["image"]), "answer": row["answer"]}
        for row in rows
        if row["id"].startswith("shapes-")
    ]


def asked_engines(folder: Path) -> int:
    """Engines that are up: each logs its requests into a file of its own."""
    return sum(log.stat().st_size > 0 for log in (folder / "log").glob("*.jsonl"))


def kill_a_core(folder: Path) -> None:
    """Kill an engine's core as soon as a first batch is durable and both engines have been asked."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and not (batch_files(folder / "out") and asked_engines(folder) == 2):
        time.sleep(0.05)
    tree = psutil.Process().children(recursive=True)
    living = [one for one in tree if one.status() != psutil.STATUS_ZOMBIE]
    cores = [one for one in living if "EngineCore" in " ".join(one.cmdline())]
    cores[0].kill()


@pytest.fixture(scope="module")
def answered(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunSummary, Path]:
    folder = tmp_path_factory.mktemp("replicas")
    manifest = folder / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in pictures()))
    configuration = quickstart(
        f"manifest.uri={manifest}",
        f"output.uri={folder}/out",
        f"storage.allowed_roots=[{SAMPLE}]",
        "prompt=null",
        "tasks={caption: {prompt: Describe this image.}, what: {prompt: What is seen here}}",
        "engine.replicas=2",
        f"engine.request_log={folder}/log",
        "engine.batches_in_flight=2",
        "engine.args.block_size=32",
        "output.batch_rows=4",
        "output.accept_truncated=true",
    )
    killer = threading.Thread(target=kill_a_core, args=(folder,))
    killer.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        summary = run(configuration)
    killer.join()
    return summary, folder / "out"


def test_no_row_is_lost_and_each_item_has_a_row_for_each_task(answered: tuple[RunSummary, Path]) -> None:
    summary, output = answered
    table = results(str(output)).select(["id", "task", "status", "text", "answer"]).to_pylist()
    assert Counter((row["task"], row["status"]) for row in table) == {
        ("caption", "ok"): summary.rows // 2,
        ("what", "ok"): summary.rows // 2,
    }
    assert len({(row["id"], row["task"]) for row in table}) == len(table) == 2 * len(pictures())
    assert [row["id"] for row in table if row["task"] == "caption" and row["text"] != row["answer"]] == []


def test_the_other_engine_went_on(answered: tuple[RunSummary, Path]) -> None:
    summary, output = answered
    assert summary.engine_restarts == 1
    killed, spared = sorted(summary.replicas.values(), key=lambda one: -one["restarts"])
    assert (killed["restarts"], spared["restarts"]) == (1, 0)
    assert killed["lost_seconds"] > 0
    assert spared["lost_seconds"] == 0
    attempts = results(str(output))["attempts"].to_pylist()
    assert set(attempts) == {1, 2}
    # Two batches of 4 items and 2 tasks may have been in hand of the one that was killed.
    assert sum(one == 2 for one in attempts) <= 2 * 4 * 2


def test_a_picture_is_rendered_and_computed_once_for_both_questions(
    answered: tuple[RunSummary, Path],
) -> None:
    spared, killed = sorted(answered[0].replicas.values(), key=lambda one: one["restarts"])
    assert spared["media_hit_rate"] >= 0.45
    assert spared["prefix_hit_rate"] > 0.2
    assert killed["media_hit_rate"] > 0  # its caches died with it on the way


def test_the_summary_tells_where_the_time_went(answered: tuple[RunSummary, Path]) -> None:
    summary, _ = answered
    assert summary.bottleneck
    for replica in summary.replicas.values():
        assert 0 <= replica["idle_seconds"] < replica["up_seconds"]
        # Two batches of 4 items and 2 tasks at most.
        assert 0 < replica["mean_running"] <= 16
        assert 0 < replica["mean_in_hand"] <= 16
        assert replica["output_tokens_per_second"] > 0
