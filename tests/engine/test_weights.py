"""Model folders: found where they are, and told apart without reading the weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.weights import fingerprint, is_folder_path, locate
from pipeline.errors import EngineError
from pipeline.storage import Storage

LARGE = 4 * 2**20 + 1


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "processor").mkdir(parents=True)
    (folder / "config.json").write_text('{"a": 1}')
    (folder / "processor" / "size.json").write_text('{"b": 1}')
    (folder / "model.safetensors").write_bytes(b"\0" * LARGE)
    return folder


def test_the_fingerprint_is_of_what_is_in_the_folder_not_of_where_it_is(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(model, copy)
    os.utime(copy / "config.json", (0, 0))
    assert fingerprint(Storage(), str(copy)) == fingerprint(Storage(), str(model))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text('{"a": 2}'),
        lambda folder: (folder / "processor" / "size.json").write_text('{"b": 2}'),
        lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * (LARGE + 1)),
        lambda folder: (folder / "config.json").rename(folder / "other.json"),
        lambda folder: (folder / "processor" / "size.json").rename(folder / "size.json"),
        lambda folder: (folder / "extra.json").touch(),
        lambda folder: (folder / "config.json").unlink(),
    ],
)
def test_another_model_has_another_fingerprint(model: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint(Storage(), str(model))
    change(model)
    assert fingerprint(Storage(), str(model)) != before


def test_the_weights_are_not_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = Storage.read

    def recording(self: Storage, uri: str, *args: Any, **options: Any) -> bytes:
        read.append(Path(uri).name)
        return original(self, uri, *args, **options)

    monkeypatch.setattr(Storage, "read", recording)
    fingerprint(Storage(), str(model))
    assert sorted(read) == ["config.json", "size.json"]


def test_a_hub_name_is_its_own_fingerprint() -> None:
    assert fingerprint(Storage(), "Qwen/Qwen2.5-VL-3B-Instruct") == "Qwen/Qwen2.5-VL-3B-Instruct"


def test_what_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert [
        p for p in ["demo/model", "/no/such", "./x", "../x", "owner/name", "s3://b/m"] if is_folder_path(p)
    ] == [
        "demo/model",
        "/no/such",
        "./x",
        "../x",
    ]


def test_a_local_folder_is_found_by_either_path(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    assert locate(Storage(), "model", str(model)) == str(model)
    # A Ray worker has the driver's files in another folder.
    assert locate(Storage(), "model", "/driver/only/model") == str(model)


def test_the_driver_s_folder_goes_before_one_of_the_same_name_here(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert locate(Storage(), "model", str(model)) == str(model)


def test_a_hub_name_is_left_to_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(Storage(), "owner/name", "owner/name") == "owner/name"


def test_a_folder_that_this_node_lacks() -> None:
    with pytest.raises(EngineError, match=r"no folder /no/such/model; use a shared folder or object storage"):
        locate(Storage(), "./model", "/no/such/model")
