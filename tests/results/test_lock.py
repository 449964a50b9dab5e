"""The lock: dead holders are succeeded, living ones respected; with real processes, on a disk and on S3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, OutputTakenError
from pipeline.results.holder import Holder
from pipeline.results.lock import SETTLE_SECONDS, Lock
from pipeline.results.lock_file import LockFile
from pipeline.storage import Storage
from tests.conftest import REPOSITORY, S3Server


@dataclass(frozen=True)
class Place:
    """A folder to lock, and how another process reaches it."""

    file: LockFile
    config: dict[str, object]

    def lock(self, interval: float = 0.1, wait: Callable[[float], None] = time.sleep) -> Lock:
        return Lock(self.file.storage, self.file.folder, interval=interval, wait=wait)

    def holder(self) -> Holder:
        holder = Holder.of(self.file.read() or b"")
        assert holder is not None
        return holder


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "disk":
        return Place(LockFile(Storage(), str(tmp_path / "out/recipe=r")), {})
    server: S3Server = request.getfixturevalue("s3_server")
    return Place(LockFile(server.storage, f"{server.make_bucket()}/out/recipe=r"), server.config)


@contextmanager
def keeper(place: Place, interval: float) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-m", "tests.results.lock_keeper", place.file.folder, str(interval)]
    with subprocess.Popen(
        [*command, json.dumps(place.config)], cwd=REPOSITORY, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, and wait until it is dead, but leave it unburied as a careless parent would."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def wait_until(condition: Callable[[], bool]) -> None:
    """Look for as long as a slow machine may take."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not come about")


def test_a_holder_killed_on_this_machine_is_succeeded_at_once(place: Place) -> None:
    waited: list[float] = []
    with keeper(place, interval=60) as process:
        kill(process)
        assert place.holder().pid == process.pid
        with place.lock(wait=waited.append):
            assert place.holder().pid == os.getpid()
    assert waited == [SETTLE_SECONDS]
    assert place.file.read() is None


def test_a_holder_killed_on_another_machine_is_succeeded_after_two_beats_were_missed(place: Place) -> None:
    waited: list[float] = []
    with keeper(place, interval=40) as process:
        kill(process)
        place.file.replace(replace(place.holder(), host="elsewhere"))
        with place.lock(wait=waited.append):
            assert place.holder().pid == os.getpid()
    assert sum(waited) - SETTLE_SECONDS == 100


def test_a_living_holder_is_respected_and_named(place: Place) -> None:
    with keeper(place, interval=1.0) as process:
        before = place.holder()
        with pytest.raises(ConfigError) as raised, place.lock():
            pass
        assert f"in use by run {before.run} (host {before.host}, process {process.pid})" in str(raised.value)
        assert process.poll() is None
        assert place.holder().beat > before.beat


def test_a_lock_released_while_it_is_watched_is_free(place: Place) -> None:
    with keeper(place, interval=60) as process:
        assert process.stdin is not None

        def wait(seconds: float) -> None:
            assert seconds == 30
            process.stdin.close()  # type: ignore[union-attr]
            process.wait()

        with place.lock(wait=wait):
            assert place.holder().pid == os.getpid()


def test_the_lock_is_released_at_the_end_and_on_errors(place: Place) -> None:
    with place.lock():
        assert place.holder().pid == os.getpid()
    assert place.file.read() is None
    with pytest.raises(ZeroDivisionError), place.lock():
        raise ZeroDivisionError
    assert place.file.read() is None


def test_a_number_used_again_by_another_process_is_not_the_holder(place: Place) -> None:
    waited: list[float] = []
    mine = Holder.this_process(60)
    assert mine.process_start is not None
    place.file.replace(replace(mine, process_start=mine.process_start - 1))
    with place.lock(wait=waited.append):
        assert place.holder().process_start == mine.process_start
    assert waited == [SETTLE_SECONDS]


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b'{"run": "r", "interval": "x"}'])
def test_a_lock_that_names_nobody_is_succeeded_when_it_stands_still(place: Place, data: bytes) -> None:
    waited: list[float] = []
    place.file.storage.put(place.file.uri, data)
    with place.lock(wait=waited.append):
        assert place.holder().pid == os.getpid()
    assert sum(waited) > 10


def test_the_holder_learns_that_it_was_taken_over_and_leaves_the_lock_alone(place: Place) -> None:
    other = replace(Holder.this_process(0.1), host="elsewhere", pid=77)
    told = pytest.raises(OutputTakenError, match=r"taken over by run .* \(host elsewhere, process 77\)")
    with told, place.lock() as lock:
        lock.check()
        place.file.replace(other)
        for _ in range(600):
            time.sleep(0.05)
            lock.check()
    assert place.file.read() == other.data


def test_the_beat_goes_on_after_the_store_was_out_of_reach(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(LockFile(Storage(), str(tmp_path / "out")), {})
    with place.lock() as lock:
        (tmp_path / "out").rename(tmp_path / "away")
        (tmp_path / "out").touch()
        wait_until(lambda: "cannot be written, trying again" in caplog.text)
        (tmp_path / "out").unlink()
        (tmp_path / "away").rename(tmp_path / "out")
        before = place.holder().beat
        wait_until(lambda: place.holder().beat > before)
        lock.check()


def test_of_two_that_take_over_at_once_the_one_that_wrote_first_gives_way(place: Place) -> None:
    other = replace(Holder.this_process(60), host="elsewhere")
    place.file.replace(replace(Holder.this_process(60), process_start=1))
    beats = iter(range(100))

    def meanwhile(_: float) -> None:
        place.file.replace(replace(other, beat=next(beats)))

    with pytest.raises(ConfigError, match="host elsewhere"), place.lock(wait=meanwhile):
        pass
    assert place.holder().run == other.run


def test_a_lock_removed_by_hand_comes_back(place: Place) -> None:
    with place.lock() as lock:
        run = place.holder().run
        place.file.storage.remove([place.file.uri])
        wait_until(lambda: place.file.read() is not None)
        lock.check()
        assert place.holder().run == run


@pytest.mark.parametrize("stale", [False, True])
def test_of_many_at_once_one_has_it(place: Place, stale: bool) -> None:
    if stale:
        place.file.replace(replace(Holder.this_process(0.1), process_start=1))
    all_there, all_told = threading.Barrier(6), threading.Barrier(6)
    told: list[str] = []

    def contend() -> None:
        all_there.wait()
        try:
            with place.lock() as lock:
                time.sleep(1)
                lock.check()
                told.append("held")
                all_told.wait()
        except (ConfigError, OutputTakenError):
            told.append("refused")
            all_told.wait()

    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["held"] + ["refused"] * 5
