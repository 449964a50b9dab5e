"""Around a run: what it sweeps before, and how it tells of a store that is out."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from pipeline.cli import EXIT_STORAGE, main
from pipeline.config_file import LoadedConfig
from pipeline.errors import StorageError
from pipeline.plan import make_plan
from pipeline.results.duplicates import DuplicateIds, find_duplicate_ids
from pipeline.results.ledger import Ledger
from pipeline.run import _telling_outages, run
from pipeline.storage import Storage
from tests.e2e.configurations import echo
from tests.e2e.conftest import local_ray  # noqa: F401 (a fixture)


def configured(folder: Path) -> LoadedConfig:
    (folder / "m.jsonl").write_text(json.dumps({"id": "a", "image": "a.png"}) + "\n")
    return echo(folder / "m.jsonl", folder / "out")


def test_temporary_files_of_killed_runs_are_swept(tmp_path: Path) -> None:
    loaded = configured(tmp_path)
    plan = make_plan(loaded)
    (work,) = plan.work
    Storage().put(plan.ledger.shard_uri(work.shard.name), b"a finished shard")
    leftovers = [tmp_path / "out" / f".{name}.{'0' * 32}.tmp" for name in ("old", "young")]
    for leftover in leftovers:
        leftover.touch()
    os.utime(leftovers[0], (0, 0))
    assert run(loaded).done_before == 1
    assert [leftover.exists() for leftover in leftovers] == [False, True]


@pytest.mark.usefixtures("local_ray")
def test_an_outage_in_a_task_of_rays_is_told_in_one_line() -> None:
    def out() -> None:
        raise StorageError("cannot read s3://b/k: HTTP 503")

    with pytest.raises(StorageError) as raised, _telling_outages():
        ray.get(ray.remote(out).remote())
    assert type(raised.value) is StorageError
    assert str(raised.value) == "cannot read s3://b/k: HTTP 503"
    with pytest.raises(ray.exceptions.RayError), _telling_outages():
        ray.get(ray.remote(lambda: 1 / 0).remote())


@pytest.mark.usefixtures("local_ray")
def test_an_outage_at_the_check_for_equal_ids_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Out(Storage):
        """Still lists its files, and opens none."""

        def filesystem(self, uri: str) -> tuple[object, str]:
            raise ConnectionResetError("Connection reset by peer")

    def look(ledger: Ledger, items: int) -> DuplicateIds | None:
        return find_duplicate_ids(replace(ledger, storage=Out()), items)

    monkeypatch.setattr("pipeline.run.find_duplicate_ids", look)
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps(configured(tmp_path).written))
    assert main(["run", "--config", str(config)]) == EXIT_STORAGE == 5
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    (shard,) = (tmp_path / "out").glob("recipe=*/*.parquet")
    cure = "the same command goes on from what is durable"
    assert error == f"error: cannot read {shard}: ConnectionResetError; {cure}"
