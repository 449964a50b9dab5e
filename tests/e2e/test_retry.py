"""Asking again what failed: in place, and with other settings as another recipe."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from PIL import Image

from pipeline.cli import main
from tests.e2e.configurations import results

ITEMS = 60
MISSING = (7, 8, 40)


@pytest.fixture
def config(local_ray: None, tmp_path: Path) -> Path:
    """A run over 60 pictures of which three are missing, done."""
    rows = []
    for number in range(ITEMS):
        if number not in MISSING:
            Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number}.png")
        rows.append({"id": str(number), "image": f"{number}.png"})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    written = {
        "manifest": {"uri": str(tmp_path / "m.jsonl")},
        "model": {"type": "qwen2_5_vl"},
        "tasks": {"caption": {"prompt": "Describe."}, "ocr": {"prompt": "Read."}},
        "sampling": {"max_tokens": 16},
        "engine": {"kind": "echo", "request_log": str(tmp_path / "log")},
        "output": {"uri": str(tmp_path / "out"), "shard_rows": 32, "batch_rows": 8},
    }
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(written), "utf-8")
    assert main(["run", "--config", str(path)]) == 0
    return path


def asked(folder: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in (folder / "log").glob("*.jsonl"))


def table(folder: Path) -> pa.Table:
    return results(str(next((folder / "out").glob("recipe=*"))))


def test_failed_rows_are_done_again_in_place(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = table(tmp_path)
    assert Counter(before["status"].to_pylist()) == {"ok": 2 * (ITEMS - 3), "failed": 6}
    assert asked(tmp_path) == 2 * (ITEMS - 3)
    for number in MISSING[:2]:
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number}.png")
    assert main(["retry", "--config", str(config), "--code", "decode_corrupt"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert main(["retry", "--config", str(config), "--code", "fetch_not_found"]) == 0
    after = table(tmp_path)
    assert asked(tmp_path) == 2 * (ITEMS - 1)
    assert after["id"].to_pylist() == before["id"].to_pylist()
    failed = [row["id"] for row in after.to_pylist() if row["status"] == "failed"]
    assert failed == ["40", "40"]
    same = [i for i, row in enumerate(before.to_pylist()) if row["status"] == "ok"]
    assert after.take(same).equals(before.take(same))
    assert not list((tmp_path / "out").glob("recipe=*/.retries/*/*.parquet"))


def test_other_settings_make_another_recipe_that_takes_over_the_good_rows(config: Path, tmp_path: Path) -> None:
    before = table(tmp_path)
    (old,) = (tmp_path / "out").glob("recipe=*")
    Image.new("RGB", (8, 8), (7, 0, 0)).save(tmp_path / "7.png")
    assert main(["retry", "--config", str(config), "sampling.max_tokens=99"]) == 0
    (new,) = [folder for folder in (tmp_path / "out").glob("recipe=*") if folder != old]
    assert results(str(old)).equals(before)
    after = results(str(new)).to_pylist()
    assert [row["id"] for row in after] == before["id"].to_pylist()
    assert Counter((row["status"], row["source"]) for row in after) == {
        ("ok", "cache"): 2 * (ITEMS - 3),
        ("ok", "engine"): 2,
        ("failed", None): 4,
    }
    assert asked(tmp_path) == 2 * (ITEMS - 3) + 2
    first = next(new.glob("*.parquet"))
    assert pa.parquet.read_schema(first).metadata[b"framescribe.recipe_id"].decode() == new.name[7:]
    assert main(["retry", "--config", str(config), "sampling.max_tokens=99"]) == 0
    assert asked(tmp_path) == 2 * (ITEMS - 3) + 2


def test_a_recipe_to_start_from_must_be_there(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old,) = (tmp_path / "out").glob("recipe=*")
    assert main(["retry", "--config", str(config), "--from", "0123"]) == 2
    told = capsys.readouterr().err
    assert "no results of recipe 0123" in told
    assert old.name[7:] in told
    assert main(["retry", "--config", str(config), "--code", "tired"]) == 2
    assert "--code tired: no such code" in capsys.readouterr().err
