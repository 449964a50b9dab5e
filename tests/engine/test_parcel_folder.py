"""The folder of parcels goes with its process, and where that was killed, with the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engine import parcel_folder
from pipeline.engine.parcel_folder import ParcelFolder

OWNER = """
import sys
from pipeline.engine import parcel_folder
parcel_folder.MEMORY = sys.argv[1]
made = parcel_folder.ParcelFolder()
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parcel_folder, "MEMORY", str(tmp_path))
    return tmp_path


class Owner:
    """Another process with a folder of an hour ago, in which a parcel lies."""

    def __init__(self, memory: Path) -> None:
        command = [sys.executable, "-c", OWNER, str(memory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.path = Path(self.process.stdout.readline().strip())
        (self.path / "parcel").write_bytes(b"tensor")
        hour_ago = self.path.stat().st_mtime - 3600
        os.utime(self.path, (hour_ago, hour_ago))


def test_a_process_that_ends_takes_it_along(memory: Path) -> None:
    owner = Owner(memory)
    owner.process.communicate()
    assert list(memory.iterdir()) == []


def test_a_killed_ones_goes_with_the_next_and_a_living_ones_stays(memory: Path) -> None:
    killed, living = Owner(memory), Owner(memory)
    killed.process.kill()
    killed.process.communicate()
    assert killed.path.exists()
    made = ParcelFolder()
    assert set(memory.iterdir()) == {living.path, made.path}
    living.process.communicate()


def test_one_that_may_not_be_locked_yet_and_what_is_no_folder_of_parcels_stay(memory: Path) -> None:
    (memory / "framescribe-parcels-new").mkdir()
    (memory / "framescribe-parcels-file").write_bytes(b"no folder")
    (memory / "framescribe-out").mkdir()
    os.utime(memory / "framescribe-out", (0, 0))
    made = ParcelFolder()
    names = {"framescribe-parcels-new", "framescribe-parcels-file", "framescribe-out", made.path.name}
    assert {path.name for path in memory.iterdir()} == names


def test_it_can_be_removed_before(memory: Path) -> None:
    made = ParcelFolder()
    made.remove()
    made.remove()
    assert list(memory.iterdir()) == []
