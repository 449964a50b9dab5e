"""Runs that have nothing to ask an engine."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pipeline.config_file import LoadedConfig
from pipeline.plan import make_plan
from pipeline.run import run
from pipeline.storage import Storage
from tests.e2e.configurations import echo


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
