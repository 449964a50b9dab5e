"""Around a run: what it sweeps before, and how it tells of a store that is out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import ray

from pipeline.config_file import LoadedConfig
from pipeline.errors import StorageError
from pipeline.plan import make_plan
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
