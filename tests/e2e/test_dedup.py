"""Equal items are paid once: within a run over two nodes, in the next run, and in another output."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from demo.make_dataset import make_dataset
from pipeline.run import run
from tests.conftest import S3Server
from tests.e2e.configurations import echo, results

DISTINCT = 150


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Distinct pictures."""
    made = make_dataset(tmp_path_factory.mktemp("pictures"), shapes=DISTINCT + 2, texts=0, videos=0, seed=5)
    rows = [json.loads(line) for line in made.read_text("utf-8").splitlines()]
    return [made.parent / row["image"] for row in rows]


def write_manifest(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def asked(log: Path) -> Counter[str]:
    """How often each item was sent to an engine."""
    lines = (line for path in log.glob("*.jsonl") for line in path.read_text("utf-8").splitlines())
    return Counter(json.loads(line)["item_uuid"] for line in lines)


def test_half_of_the_rows_are_duplicates(two_nodes: None, pictures: list[Path], tmp_path: Path) -> None:
    rows = [{"id": f"{i}-{n}", "image": str(pictures[i]), "question": f"What is {i}?"}
            for i in range(DISTINCT) for n in range(2)]  # fmt: skip
    random.Random(4).shuffle(rows)
    manifest = write_manifest(tmp_path / "m.jsonl", rows)
    engine = {"replicas": 2, "request_log": str(tmp_path / "log")}
    storage = {"allowed_roots": [str(pictures[0].parent)]}
    pieces = {"batch_rows": 4, "shard_rows": 50}
    summary = run(echo(manifest, tmp_path / "out", engine=engine, output_parts=pieces, storage=storage))
    assert (summary.ok, summary.failed, summary.cached) == (2 * DISTINCT, {}, DISTINCT)
    table = results(str(tmp_path / "out"))
    assert table["id"].to_pylist() == [row["id"] for row in rows]
    texts = table["text"].to_pylist()
    assert all(row["question"] in text for row, text in zip(rows, texts, strict=True))
    assert len(set(texts)) == DISTINCT
    assert Counter(table["source"].to_pylist()) == {"engine": DISTINCT, "duplicate": DISTINCT}
    assert set(table["status"].to_pylist()) == {"ok"}
    counts = asked(tmp_path / "log")
    assert len(counts) == DISTINCT
    assert set(counts.values()) == {1}
    assert len(list((tmp_path / "log").glob("*.jsonl"))) == 2


def s3_run(server: S3Server, bucket: str, manifest: str, output: str, log: Path, **more: Any) -> pa.Table:
    engine = {"request_log": str(log)}
    pieces = {"batch_rows": 16, "shard_rows": 64}
    config = echo(f"{bucket}/{manifest}", f"{bucket}/{output}", engine=engine, output_parts=pieces,
                  storage=server.config, **more)  # fmt: skip
    run(config)
    return results(f"{bucket}/{output}", server.storage)


def test_one_percent_more_items_cost_one_percent(
    two_nodes: None, pictures: list[Path], s3_server: S3Server, tmp_path: Path
) -> None:
    bucket = s3_server.make_bucket()
    storage = s3_server.storage
    for number, picture in enumerate(pictures):
        storage.put(f"{bucket}/{number}.png", picture.read_bytes())
    rows = [{"id": str(i), "image": f"{i}.png"} for i in range(len(pictures))]

    def put_manifest(rows: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        storage.put(f"{bucket}/m.jsonl", text.encode())

    put_manifest(rows[:DISTINCT])
    first = s3_run(s3_server, bucket, "m.jsonl", "out", tmp_path / "1")
    assert set(first["source"].to_pylist()) == {"engine"}
    before = Counter(s3_server.reads(bucket))
    grown = [rows[DISTINCT], *rows[:DISTINCT], rows[DISTINCT + 1]]
    put_manifest(grown)
    second = s3_run(s3_server, bucket, "m.jsonl", "out", tmp_path / "2")
    fetched = {key for key in Counter(s3_server.reads(bucket)) - before if key.endswith(".png")}
    assert fetched == {f"{DISTINCT}.png", f"{DISTINCT + 1}.png"}
    assert second["id"].to_pylist() == [row["id"] for row in grown]
    assert second["source"].to_pylist() == ["engine", *["cache"] * DISTINCT, "engine"]
    assert second["run"].to_pylist()[1:-1] == first["run"].to_pylist()
    assert sum(asked(tmp_path / "2").values()) == 2
    elsewhere = s3_run(
        s3_server, bucket, "m.jsonl", "else", tmp_path / "3", cache={"outputs": [f"{bucket}/out"]}
    )
    assert set(elsewhere["source"].to_pylist()) == {"cache"}
    assert elsewhere["text"].to_pylist() == second["text"].to_pylist()
    assert not (tmp_path / "3").exists() or not asked(tmp_path / "3")
