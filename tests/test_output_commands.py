"""status, recipes and compact: what they print, for people and for programs, and what they refuse."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.results.holder import Holder
from pipeline.results.lock import Lock
from pipeline.results.lock_file import LockFile
from pipeline.storage import Storage
from tests.conftest import S3_SECRET, S3Server
from tests.results.recipe_folder import RecipeFolder, ok, third_fails

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> RecipeFolder:
    """20 rows in shards of 8: one finished, one begun, one not begun."""
    made = RecipeFolder(Storage(), str(tmp_path / "out"), 20, 8)
    made.begin()
    made.finish([0], third_fails)
    made.put_batch(1, (8, 12), ok)
    made.put_run("20261130T010203Z", ok=9, failed={"too_large": 1}, seconds=61.5, rows_per_second=2.5)
    return made


def lines(printed: Printed, *arguments: str, code: int = 0) -> list[str]:
    assert main(list(arguments)) == code
    streams = printed.readouterr()
    assert S3_SECRET not in streams.out + streams.err
    return [line.strip() for line in (streams.err if code else streams.out).splitlines()]


def test_status_for_people(folder: RecipeFolder, capsys: Printed) -> None:
    assert lines(capsys, "status", folder.output) == [
        folder.ledger.folder,
        "run        none is going",
        "rows       12 durable of 20; 8 pending",
        "9 ok, 3 failed",
        "shards     1 done, 1 begun",
        "failed     2 fetch_not_found, such as 'item-0': row 0 is bad",
        "failed     1 too_large, such as 'item-3': row 3 is bad",
        "20261130T010203Z  9 ok, 1 failed in 61.5 s, 2.5 rows/s",
    ]


def test_status_for_programs(folder: RecipeFolder, capsys: Printed) -> None:
    (found,) = json.loads("".join(lines(capsys, "status", "--json", folder.output)))
    assert found == {
        "recipe": "r1",
        "folder": folder.ledger.folder,
        "running": False,
        "lock": None,
        "rows": 20,
        "durable": 12,
        "pending": 8,
        "ok": 9,
        "waiting": 0,
        "failed": [
            {"code": "fetch_not_found", "rows": 2, "sample": {"id": "item-0", "reason": "row 0 is bad"}},
            {"code": "too_large", "rows": 1, "sample": {"id": "item-3", "reason": "row 3 is bad"}},
        ],
        "retried": 0,
        "shards": {"done": 1, "open": 1},
        "runs": [
            {
                "started": "20261130T010203Z", "ok": 9, "failed": {"too_large": 1},
                "seconds": 61.5, "rows_per_second": 2.5,
            }
        ],
    }  # fmt: skip


def test_status_tells_a_run_that_is_going_from_one_that_died(folder: RecipeFolder, capsys: Printed) -> None:
    with Lock(folder.storage, folder.ledger.folder, interval=1.0):
        assert re.fullmatch(
            rf"run        going: run \S+ \(host \S+, process {os.getpid()}\) since \S+Z",
            lines(capsys, "status", folder.output)[1],
        )
    dead = replace(Holder.this_process(0.1), host="elsewhere", pid=7)
    LockFile(folder.storage, folder.ledger.folder).replace(dead)
    told = lines(capsys, "status", folder.output)[1]
    assert told.startswith("run        died: run ")
    assert told.endswith("; the same command goes on")


def test_status_on_s3_by_overrides_a_configuration_or_the_environment(
    s3_server: S3Server, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RecipeFolder(s3_server.storage, f"{s3_server.make_bucket()}/out", 8, 8)
    folder.begin()
    folder.finish([0], ok)
    monkeypatch.setenv("S3_KEY", S3_SECRET)
    keys = ["storage.s3.access_key_id=tester", "storage.s3.secret_access_key=${S3_KEY}"]
    where = f"storage.s3.endpoint_url={s3_server.endpoint}"
    expected = "rows       8 durable of 8; 0 pending"
    assert lines(capsys, "status", folder.output, where, *keys)[2] == expected
    file = tmp_path / "run.yaml"
    storage = {"s3": {"access_key_id": "tester", "secret_access_key": "${S3_KEY}"}}
    file.write_text(
        json.dumps(
            {"manifest": {"uri": "m"}, "model": {"type": "qwen2_5_vl"}, "prompt": "?", "output": {"uri": "o"}}
            | {"storage": storage}
        )
    )
    assert lines(capsys, "status", "--config", str(file), folder.output, where)[2] == expected
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", S3_SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    assert lines(capsys, "status", folder.output)[2] == expected


def test_recipes_newest_first_with_what_differs(folder: RecipeFolder, capsys: Printed) -> None:
    newer = replace(folder, id="r2")
    newer.begin(sampling={"temperature": 0.0, "max_tokens": 64}, dtype="bfloat16")
    for name, day in (("r1", 29), ("r2", 30)):
        moment = 1_795_910_400 + (day - 29) * 86_400  # 29 November 2026, 0:00 UTC
        os.utime(f"{folder.output}/recipe={name}/_recipe.json", (moment, moment))
    told = lines(capsys, "recipes", folder.output)
    assert told[0] == "r2  2026-11-30T00:00:00Z  0 of 20 rows: 0 ok, 0 failed"
    assert told[1].startswith("by framescribe ")
    assert told[2:4] == ['dtype: nothing → "bfloat16"', "sampling.max_tokens: 48 → 64"]
    assert told[4] == "r1  2026-11-29T00:00:00Z  12 of 20 rows: 9 ok, 3 failed"
    found = json.loads("".join(lines(capsys, "recipes", "--json", folder.output)))
    assert [one["recipe"] for one in found] == ["r2", "r1"]
    assert found[0]["changed"] == [
        {"path": "dtype", "old": None, "new": "bfloat16"},
        {"path": "sampling.max_tokens", "old": 48, "new": 64},
    ]
    assert found[1]["changed"] == []
    assert found[1]["failed"] == {"fetch_not_found": 2, "too_large": 1}
    assert "pyarrow" in found[1]["versions"]


def test_compact_prints_the_folder_to_read(folder: RecipeFolder, capsys: Printed) -> None:
    assert "has 1 open shards; finish it by the command" in lines(capsys, "compact", folder.output, code=2)[0]
    folder.finish([1, 2], ok)
    told = lines(capsys, "compact", folder.output, "--target-mb", "1")
    assert told[0] == "20 rows of 3 shards in 1 files"
    assert re.fullmatch(
        rf"read from  {folder.output}/_compact/recipe=r1/\d{{8}}T\d{{6}}\.\d{{6}}Z/\*\.parquet", told[1]
    )
    again = lines(capsys, "compact", folder.output, "--target-mb", "1")
    assert again == ["20 rows of 3 shards in 1 files, as before", told[1]]
    assert LockFile(folder.storage, folder.ledger.folder).read() is None
    with Lock(folder.storage, folder.ledger.folder, interval=1.0):
        assert "is in use by run" in lines(capsys, "compact", folder.output, code=2)[0]


def test_what_is_not_there_or_not_clear_is_refused(folder: RecipeFolder, capsys: Printed) -> None:
    nowhere = f"{folder.output}-none"
    for command in ("status", "recipes", "compact"):
        told = lines(capsys, command, nowhere, code=2)
        assert told == [f"error: OUTPUT: there is no folder {nowhere}"]
        told = lines(capsys, command, folder.ledger.folder, code=2)
        assert "has no folder recipe=…; name what output.uri was" in told[0]
        told = lines(capsys, command, folder.output, "storage.s3.endpoint=x", code=2)
        assert told == ["error: storage.s3.endpoint: no such field; did you mean endpoint_url?"]
        told = lines(capsys, command, folder.output, "output.uri=x", code=2)
        assert told == ["error: override 'output.uri=x': only storage.… can be set without --config"]
    replace(folder, id="r2").begin()
    assert "name one of " in lines(capsys, "compact", folder.output, code=2)[0]
    told = lines(capsys, "status", folder.output, "--recipe", "r3", code=2)
    assert told[0].startswith("error: --recipe r3: ")
