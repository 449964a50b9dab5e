"""Two nodes, one replica on each: every row once, and work done on both."""

from __future__ import annotations

import json
from pathlib import Path

from demo.make_dataset import make_dataset
from pipeline.run import run
from tests.e2e.configurations import batch_files, echo, results

ITEMS = 400


def test_every_row_once_over_two_nodes(two_nodes: None, tmp_path: Path) -> None:
    manifest = make_dataset(tmp_path / "data", shapes=ITEMS, texts=0, videos=0, seed=3)
    engine = {"replicas": 2, "request_log": str(tmp_path / "log")}
    pieces = {"batch_rows": 4, "shard_rows": 150}
    summary = run(echo(manifest, tmp_path / "out", engine=engine, output_parts=pieces))
    assert (summary.ok, summary.failed) == (ITEMS, {})
    table = results(str(tmp_path / "out"))
    written = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]
    assert table["id"].to_pylist() == [row["id"] for row in written]
    assert len(list((tmp_path / "out").glob("recipe=*/*.parquet"))) == 3
    assert batch_files(tmp_path / "out") == []
    logs = {path.name.split("-")[-2]: path for path in (tmp_path / "log").glob("*.jsonl")}
    assert len(logs) == 2
    assert all(len(path.read_text("utf-8").splitlines()) > ITEMS / 10 for path in logs.values())
