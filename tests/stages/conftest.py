"""A small manifest of every kind of trouble, read as the read stage would."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

from pipeline.config import ColumnsConfig, ManifestConfig, MediaConfig
from pipeline.manifest import open_manifest, shards
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec
from pipeline.results.dedup import Dedup
from pipeline.results.schema import RESERVED
from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read, Work, work_rows
from pipeline.storage import Storage


def png(color: str, size: tuple[int, int] = (40, 20)) -> bytes:
    """A picture of one colour."""
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def manifest_rows(tmp_path: Path) -> list[pa.Table]:
    """The batches of a manifest of seven rows, four and three."""
    for name in ("red", "blue"):
        (tmp_path / f"{name}.png").write_bytes(png(name))
    rows = [
        {"id": "one", "image": "red.png", "n": 1},
        {"id": "own-question", "image": "red.png", "question": "What colour?", "n": 2},
        {"id": "two", "images": ["red.png", "blue.png"], "n": 3},
        {"id": "missing", "image": "nowhere.png", "n": 4},
        {"id": "none", "n": 5},
        {"id": "many", "images": ["red.png"] * 4, "n": 6},
        {"id": "outside", "image": "/etc/passwd", "n": 7},
    ]
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    storage = Storage(root=str(tmp_path))
    columns = ColumnsConfig(images="images")
    manifest = open_manifest(storage, ManifestConfig(uri=str(path), keep=["n"], columns=columns), RESERVED)
    (shard,) = shards(manifest, 100)
    (row,) = work_rows([Work(shard, ((0, 4), (4, 7)))])
    return list(Read(storage, manifest.for_workers())(row))


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    """The prepare stage of a run with two tasks."""
    return Prepare(
        storage=Storage(root=str(tmp_path)),
        loader=MediaLoader.of(MediaConfig(), load_spec("qwen2_5_vl")),
        prompts={"caption": "Describe.", "ocr": "Read."},
        answering={"model": "m"},
        max_bytes=10_000,
        max_per_item=3,
        answers=Dedup([]),
    )
