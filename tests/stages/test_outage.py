"""A store that is out: each stage tells it in its row, so that the driver has one line to show."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from pipeline.config import ManifestConfig
from pipeline.engine.echo import EchoEngine
from pipeline.errors import StorageError
from pipeline.manifest import open_manifest, shards
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec
from pipeline.results.dedup import Claim, Dedup, Verdict
from pipeline.results.ledger import Ledger
from pipeline.stages.batch import Batch
from pipeline.stages.generate import Generate, GenerateSetup, StartedEngine
from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read, Work, work_rows
from pipeline.stages.write import Write
from pipeline.storage import Storage


class Unreachable(Storage):
    """A storage whose files cannot be opened any more."""

    def open(self, uri: str) -> BinaryIO:
        raise ConnectionResetError("Connection reset by peer")

    def filesystem(self, uri: str) -> tuple[object, str]:
        raise ConnectionResetError("Connection reset by peer")


def generate(row: pa.Table) -> pa.Table:
    builder = PromptBuilder(load_spec("qwen2_5_vl"))
    setup = GenerateSetup(
        lambda: StartedEngine(EchoEngine, builder, {}), {"caption": "Describe."}, 3, 0, False, None
    )

    async def one() -> pa.Table:
        return await anext(Generate(setup)(row))

    return asyncio.run(one())


def test_a_manifest_that_can_be_read_no_longer_is_told_through_all_stages(
    tmp_path: Path, prepare: Prepare
) -> None:
    manifest_path = tmp_path / "m.jsonl"
    manifest_path.write_text('{"id": "a", "image": "a.png"}\n')
    manifest = open_manifest(Storage(root=str(tmp_path)), ManifestConfig(uri=str(manifest_path)), ())
    (shard,) = shards(manifest, 100)
    (row,) = work_rows([Work(shard, ((0, 1),))])
    (read,) = Read(Unreachable(), manifest.for_workers())(row)
    written = Write(Ledger(Storage(), str(tmp_path / "out"), ("caption",)), Dedup([]))(generate(prepare(read)))
    stats = written["stats"][0].as_py()
    assert '"outage": "cannot read ' in stats
    assert "m.jsonl: ConnectionResetError; the same command goes on" in stats
    assert not (tmp_path / "out").exists()


def test_results_that_cannot_be_written_are_told(
    tmp_path: Path, prepare: Prepare, manifest_rows: list[pa.Table]
) -> None:
    output = tmp_path / "out"
    write = Write(Ledger(Storage(), str(output), ("caption",)), Dedup([]))
    row = generate(prepare(manifest_rows[0]))
    # A file where the folder should be, as a full or broken disk would be: nothing can be written below.
    output.write_text("")
    stats = write(row)["stats"][0].as_py()
    assert f'"outage": "cannot write {output}/' in stats
    output.unlink()
    assert "outage" not in write(row)["stats"][0].as_py()
    shutil.rmtree(output)


def test_answers_that_can_be_read_no_longer_are_told(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    class Out(Dedup):
        def claim(self, claims: Sequence[Claim]) -> list[Verdict]:
            raise StorageError("cannot read s3://b/k: HTTP 503")

    batch = Batch.from_row(replace(prepare, answers=Out([]))(manifest_rows[0]))
    assert batch.stats["outage"] == "cannot read s3://b/k: HTTP 503"
    assert batch.items.num_rows == 0
    assert batch.items.schema == Batch.from_row(prepare(manifest_rows[0])).items.schema


def test_stopping_leaves_other_faults_alone() -> None:
    storage = Storage()
    with (
        pytest.raises(StorageError, match=r"cannot read s3://b/k\?…: TimeoutError;"),
        storage.stopping("read", "s3://b/k?sig=x"),
    ):
        raise TimeoutError
    with pytest.raises(FileNotFoundError), storage.stopping("read", "s3://b/k"):
        raise FileNotFoundError
