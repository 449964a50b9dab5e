"""Local files: only regular ones are read, without waiting; files are put whole; leftovers are swept by age."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError, StorageError
from pipeline.storage import Storage


def code_of(storage: Storage, uri: str) -> Code:
    with pytest.raises(ItemError) as raised:
        storage.fetch(uri, 100)
    return raised.value.code


def test_only_regular_files_are_read_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        storage = Storage(StorageConfig(allowed_roots=["/dev"]), root=str(tmp_path))
        for name in ("pipe", "link", "loop", "folder", "socket", "a/b", "x" * 300):
            assert code_of(storage, f"{tmp_path}/{name}") is Code.FETCH_NOT_FOUND, name
            with pytest.raises(ItemError) as raised:
                storage.version(f"{tmp_path}/{name}")
            assert raised.value.code is Code.FETCH_NOT_FOUND, name
    for device in ("zero", "null", "tty"):
        assert code_of(storage, f"/dev/{device}") is Code.FETCH_NOT_FOUND


def test_no_spelling_of_a_path_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to("../secret")
    (folder / "out").symlink_to("..")
    (folder / "deep" / "fine").write_text("fine")
    (folder / "in").symlink_to("deep")
    storage = Storage(root=str(folder))
    for path in ("../secret", "deep/../../secret", "link", "out/secret", "in/../../secret", "./.././secret"):
        for uri in (f"{folder}/{path}", f"file://{folder}/{path}", f"FILE://{folder}/{path}"):
            assert code_of(storage, uri) is Code.PATH_NOT_ALLOWED, uri
    for uri in (
        "file://etc/passwd",
        "file://localhost/etc/passwd",
        "file:////etc/passwd",
        "//etc/passwd",
        "~/x",
    ):
        assert code_of(storage, uri) is Code.PATH_NOT_ALLOWED, uri
    for uri in (f"{folder}/%2e%2e/secret", f"file://{folder}/..%2fsecret", f"{folder}/..\\secret"):
        assert code_of(storage, uri) is Code.FETCH_NOT_FOUND, uri
    for uri in (f"{folder}/deep/fine\x00.jpg", f"{folder}/a\nb", f"file://{folder}/\x00"):
        assert code_of(storage, uri) is Code.BAD_URI, uri
    for uri in (f"{folder}/in/fine", f"FILE://{folder}/deep/fine"):
        assert storage.fetch(uri, 100).data == b"fine"


def test_put_is_whole_or_not_at_all(tmp_path: Path) -> None:
    storage, target = Storage(), tmp_path / "new" / "folder" / "f.bin"
    storage.put(str(target), b"one")
    storage.put(str(target), b"two")
    assert target.read_bytes() == b"two"
    assert os.listdir(target.parent) == ["f.bin"]
    storage.remove([str(target), str(target)])
    assert not target.exists()


def test_what_cannot_be_written_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as raised:
        Storage().put(f"{tmp_path}/file/x.bin", b"x")
    assert str(raised.value).startswith(f"cannot write {tmp_path}/file/x.bin: ")
    assert os.listdir(tmp_path) == ["file"]


KILLED_WHILE_WRITING = """
import os, signal, sys
from pipeline.storage import Storage
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
Storage().put(sys.argv[1], b"half")
"""


def test_what_a_killed_writer_leaves_is_swept_by_its_age(tmp_path: Path) -> None:
    folder = tmp_path / "recipe=1" / ".batches"
    target = folder / "0-8.parquet"
    Storage().put(str(target), b"whole")
    for _ in range(2):
        command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(target)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    old, young = sorted(path for path in folder.iterdir() if path != target)
    day = 24 * 3600
    os.utime(old, (time.time() - day - 60, time.time() - day - 60))
    os.utime(target, (0, 0))
    for name in (".hidden.tmp", ".x.0123.tmp", "x.0123456789abcdef0123456789abcdef.tmp"):
        (folder / name).touch()
        os.utime(folder / name, (0, 0))
    assert Storage().sweep(str(tmp_path), day) == 1
    assert not old.exists()
    assert young.exists()
    assert target.read_bytes() == b"whole"
    assert len(list(folder.iterdir())) == 5
    assert Storage().sweep(f"{tmp_path}/nowhere", day) == 0
    assert Storage().sweep("s3://bucket/out", day) == 0
