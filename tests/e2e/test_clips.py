"""A dataset of segments through the whole pipeline: many rows of few videos, each part asked once, ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.run import run
from tests.e2e.configurations import echo, results
from tests.media.clips import clip


def test_rows_of_the_same_video_with_different_parts(local_ray: None, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(clip())
    (tmp_path / "same.mp4").write_bytes(clip())
    lines: list[dict[str, Any]] = [
        {"id": "whole", "video": "a.mp4"},
        {"id": "first", "video": "a.mp4", "clip": {"start": 0, "end": 2}},
        {"id": "second", "video": "a.mp4", "clip": {"start": 2, "end": 4}},
        {"id": "again", "video": "same.mp4", "clip": {"start": 2.0, "end": "4"}},
        {"id": "backwards", "video": "a.mp4", "clip": {"start": 4, "end": 2}},
        {"id": "beyond", "video": "a.mp4", "clip": {"start": 60}},
        {"id": "soon", "video": "a.mp4", "clip": {"start": "soon"}},
    ]
    path = tmp_path / "m.jsonl"
    log = tmp_path / "log"

    def answered(columns: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = echo(path, tmp_path / "out", engine={"request_log": str(log)}, prompt="Tell.")
        manifest = config.run.manifest
        named = manifest.model_copy(update={"columns": manifest.columns.model_copy(update=columns)})
        run(type(config)(config.run.model_copy(update={"manifest": named}), config.written))
        table = results(str(tmp_path / "out")).to_pylist()
        return {row["id"]: (row["error_code"], row["source"], row["item_uuid"]) for row in table}

    def asked() -> int:
        return sum(len(file.read_text("utf-8").splitlines()) for file in log.glob("*.jsonl"))

    # Without the columns every row is the whole video, and one is asked for all.
    plain = answered({}, lines)
    assert ({found[2] for found in plain.values()}, asked()) == ({plain["whole"][2]}, 1)
    clips = {"start": "clip.start", "end": "clip.end"}
    found = answered(clips, lines)
    assert {name: row[0] for name, row in found.items()} == {
        **dict.fromkeys(("whole", "first", "second", "again")),
        **dict.fromkeys(("backwards", "soon"), "manifest_row"),
        "beyond": "clip_outside",
    }
    assert found["whole"] == (None, "cache", plain["whole"][2])
    assert len({found[name][2] for name in ("whole", "first", "second")}) == 3
    assert found["again"][2] == found["second"][2]
    assert sorted(found[name][1] for name in ("again", "second")) == ["duplicate", "engine"]
    assert asked() == 3
    # In a manifest of other rows the parts are known, and no other is taken for them.
    later = answered(clips, [lines[2], lines[1], {"id": "new", "video": "a.mp4", "clip": {"end": 3}}])
    assert {name: row[1] for name, row in later.items()} == {
        "second": "cache",
        "first": "cache",
        "new": "engine",
    }
    assert asked() == 4
