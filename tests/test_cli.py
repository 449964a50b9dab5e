"""The command: what it prints, and its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.errors import StorageError
from tests.conftest import REPOSITORY


def test_models_lists_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("qwen2_5_vl ") and "Qwen/Qwen2.5-VL-3B-Instruct" in line for line in lines)


def test_plan_shows_what_a_run_would_do_without_doing_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    code = main(
        ["plan", "--config", "conf/quickstart.yaml", f"output.uri={tmp_path}/out", "output.shard_rows=50"]
    )
    out = capsys.readouterr().out
    assert code == 0
    assert "112 items in 1 file(s), 1 task(s)" in out
    assert "3 of up to 50 rows" in out
    assert "0 items; to do: 112" in out
    assert r"<|image_pad|><|vision_end|>Describe this image.<|im_end|>\n" in out
    assert not (tmp_path / "out").exists()
    assert "ray" not in sys.modules or not sys.modules["ray"].is_initialized()


def test_a_wrong_configuration_ends_with_2_and_a_line_for_each_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    wrong = ["manifest.uri=nowhere.jsonl", "model.type=qwen", f"output.uri={tmp_path}/out"]
    for command in ("plan", "run"):
        assert main([command, "--config", "conf/quickstart.yaml", *wrong]) == 2
        errors = capsys.readouterr().err.splitlines()
        assert len(errors) == 2
        assert all(line.startswith("error: ") for line in errors)


def test_a_store_that_is_out_ends_with_5_and_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def out(loaded: object) -> None:
        raise StorageError("cannot write s3://b/k: HTTP 503")

    monkeypatch.setattr("pipeline.run.run", out)
    monkeypatch.chdir(REPOSITORY)
    assert main(["run", "--config", "conf/quickstart.yaml"]) == 5
    assert capsys.readouterr().err == "error: cannot write s3://b/k: HTTP 503\n"


def test_the_job_runs_from_anywhere_without_being_installed(tmp_path: Path) -> None:
    job = [sys.executable, str(REPOSITORY / "jobs/caption_dataset.py"), "--config", "nowhere.yaml"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(job, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: --config nowhere.yaml: No such file or directory\n"
