"""Two runs of one output: the second is refused, succeeds a dead one, or finds nothing left to do."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import pipeline.run
from pipeline.config_file import LoadedConfig
from pipeline.errors import ConfigError, OutputTakenError
from pipeline.plan import make_plan
from pipeline.results.holder import Holder
from pipeline.results.lock import Lock
from pipeline.results.lock_file import LockFile
from pipeline.run import run
from pipeline.storage import Storage
from tests.conftest import REPOSITORY
from tests.e2e.configurations import echo, results

PICTURES = REPOSITORY / "demo/dataset/images"


@pytest.fixture
def asked(tmp_path: Path) -> LoadedConfig:
    """A run of three pictures that logs each request to the engine."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for picture in sorted(PICTURES.glob("000*"))[:3]:
        shutil.copy(picture, pictures)
    return echo(pictures, tmp_path / "out", engine={"request_log": str(tmp_path / "log")})


def lock_file(loaded: LoadedConfig) -> LockFile:
    return LockFile(Storage(), make_plan(loaded).ledger.folder)


def requests(tmp_path: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in (tmp_path / "log").glob("*"))


def test_a_run_beside_a_living_one_is_refused_before_anything_starts(asked: LoadedConfig) -> None:
    file = lock_file(asked)
    with Lock(file.storage, file.folder, interval=1.0), pytest.raises(ConfigError, match="in use by run"):
        run(asked)
    assert not list(Path(file.folder).glob(".batches/*"))


@pytest.mark.usefixtures("local_ray")
def test_a_run_succeeds_a_dead_one_and_leaves_no_lock(asked: LoadedConfig, tmp_path: Path) -> None:
    file = lock_file(asked)
    Path(file.folder).mkdir(parents=True)
    file.replace(replace(Holder.this_process(60), process_start=1))
    assert run(asked).ok == 3
    assert file.read() is None
    assert Counter(results(str(tmp_path / "out"))["status"].to_pylist()) == {"ok": 3}


@pytest.mark.usefixtures("local_ray")
def test_what_another_run_did_while_this_one_waited_is_not_done_again(
    asked: LoadedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Lock):
        def __enter__(self) -> Late:
            monkeypatch.undo()
            assert run(asked).ok == 3
            return super().__enter__()

    monkeypatch.setattr(pipeline.run, "Lock", Late)
    summary = run(asked)
    assert (summary.ok, summary.done_before) == (0, 3)
    assert requests(tmp_path) == 3


@pytest.mark.usefixtures("local_ray")
def test_a_run_that_was_taken_over_stops_and_the_next_one_ends_it(
    asked: LoadedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lock_file(asked)
    other = replace(Holder.this_process(60), host="elsewhere")

    class Overtaken(Lock):
        def __enter__(self) -> Overtaken:
            super().__enter__()
            file.replace(other)
            self._advance()
            return self

    with monkeypatch.context() as patched, pytest.raises(OutputTakenError, match="host elsewhere"):
        patched.setattr(pipeline.run, "Lock", Overtaken)
        run(asked)
    assert file.read() == other.data
    file.replace(replace(other, host=Holder.this_process(1).host, process_start=1))
    summary = run(asked)
    assert summary.ok + summary.done_before == 3
    assert Counter(results(str(tmp_path / "out"))["status"].to_pylist()) == {"ok": 3}
