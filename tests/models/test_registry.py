"""Specs by name, by path, and from an installed wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.models.registry import load_spec, model_types

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ["internvl_chat", "llava", "llava-onevision", "qwen2_5_vl", "qwen3_vl", "smolvlm"]


def problems(model_type: str | Path) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_spec(str(model_type))
    return refused.value.problems


def test_every_file_is_a_spec() -> None:
    assert set(NAMES) <= set(model_types())
    for name in model_types():
        repository = load_spec(name).repository
        assert repository.count("/") == 1 if repository else name == "auto"


@pytest.mark.parametrize(
    ("name", "near"),
    [("qwen2.5-vl", "qwen2_5_vl"), ("llava_onevision", "llava-onevision"), ("SmolVLM", "smolvlm")],
)
def test_an_unknown_name_brings_the_nearest(name: str, near: str) -> None:
    (problem,) = problems(name)
    assert problem.startswith(f"model.type: unknown model {name!r}; did you mean ")
    assert near in problem


def test_a_name_like_no_other_brings_all() -> None:
    (problem,) = problems("@@@")
    assert all(name in problem for name in NAMES)


def test_a_name_is_no_path_into_other_folders() -> None:
    (problem,) = problems("../models/llava")
    assert "unknown model" in problem


def test_a_spec_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "repository: me/mine\nmedia: {image: {placeholder: <i>}}\nprompt: {template: '{media} {question}'}\n"
    )
    assert load_spec(str(file)).repository == "me/mine"


def test_one_message_for_each_fault(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "media: {image: {placeholder: <i>, token: <j>}}\nprompt: {template: '{question}'}\nmixd: true\n"
    )
    found = problems(file)
    assert len(found) == 4
    for field, message in {
        "repository": "required",
        "media.image": "'<j>' once",
        "prompt": "{media} once",
        "mixd": "not permitted",
    }.items():
        (told,) = [problem for problem in found if problem.startswith(f"{file}: {field}: ")]
        assert message in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"media: {image: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not YAML"),
        (b"", "valid dictionary"),
        (b"- a list", "valid dictionary"),
    ],
)
def test_a_file_that_is_no_spec(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_bytes(content)
    (problem,) = problems(file)
    assert str(file) in problem
    assert message in problem
    assert ": : " not in problem


def test_a_path_without_a_file(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path / "none.yaml")
    assert problem == f"model.type: {tmp_path / 'none.yaml'}: No such file or directory"


def test_an_installed_wheel_has_the_specs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    code = "import pipeline.cli; print(pipeline.cli.__file__); raise SystemExit(pipeline.cli.main(['models']))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=elsewhere,
        env={"PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    path, *lines = ran.stdout.splitlines()
    assert path == str(site / "pipeline" / "cli.py")
    assert [line.split()[0] for line in lines] == model_types()
