"""Columns that say which part of a row's video is meant: in every format that has columns, and faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.manifest import Manifest, shards
from tests.manifest.tars import write_tar

Opened = Callable[..., Manifest]
Rows = Callable[..., list[dict[str, Any]]]
EXPECTED = [(0.0, 2.5), (2.5, None), (None, None), (None, 4.0)]


def parts(rows: list[dict[str, Any]]) -> list[tuple[float | None, float | None]]:
    assert [row["error"] for row in rows] == [None] * len(rows)
    return [(row["start"], row["end"]) for row in rows]


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_jsonl_also_by_dotted_names(opened: Opened, all_rows: Rows, tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "m.jsonl",
        {"video": "a.mp4", "clip": {"from": 0, "to": 2.5}},
        {"video": "a.mp4", "clip": {"from": "2.5", "to": None}},
        {"video": "a.mp4", "clip": None},
        {"video": "a.mp4", "clip": {"to": 4}},
    )
    assert parts(all_rows(opened(path, columns={"start": "clip.from", "end": "clip.to"}))) == EXPECTED


@pytest.mark.parametrize(("name", "between"), [("m.csv", ","), ("m.tsv", "\t")])
def test_text_with_a_header(opened: Opened, all_rows: Rows, tmp_path: Path, name: str, between: str) -> None:
    lines = [("video", "from", "to"), ("a.mp4", "0", "2.5"), ("a.mp4", "2.5", ""), ("a.mp4", " ", ""),
             ("a.mp4", "", "4")]  # fmt: skip
    (tmp_path / name).write_text("".join(between.join(line) + "\n" for line in lines))
    assert parts(all_rows(opened(tmp_path / name, columns={"start": "from", "end": "to"}))) == EXPECTED


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(9, 3), pa.string()])
def test_parquet(opened: Opened, all_rows: Rows, tmp_path: Path, kind: pa.DataType) -> None:
    start = pa.array([Decimal(0), Decimal("2.5"), None, None], pa.decimal128(9, 3)).cast(kind)
    clip = pa.StructArray.from_arrays([start, pa.array([2.5, None, None, 4.0])], names=["start", "end"])
    table = pa.table({"video": ["a.mp4"] * 4, "clip": clip, "whole": pa.array([1, None, 3, 4], pa.int64())})
    pq.write_table(table, tmp_path / "m.parquet")
    manifest = opened(tmp_path / "m.parquet", columns={"start": "clip.start", "end": "clip.end"})
    assert parts(all_rows(manifest)) == EXPECTED
    (first, second, *_) = all_rows(opened(tmp_path / "m.parquet", columns={"start": "whole"}))
    assert (first["start"], second["start"], "end" in first) == (1.0, None, False)


def test_tars_have_them_in_their_json(opened: Opened, all_rows: Rows, tmp_path: Path) -> None:
    members: dict[str, bytes] = {}
    clips = ({"start": 0, "end": 2.5}, {"start": 2.5}, {}, {"end": 4})
    for number, clip in enumerate(clips):
        members |= {f"{number}.mp4": b"video", f"{number}.json": json.dumps(clip).encode()}
    write_tar(tmp_path / "m.tar", members)
    manifest = opened(tmp_path / "m.tar", columns={"start": "json.start", "end": "json.end"})
    assert parts(all_rows(manifest)) == EXPECTED


def test_they_are_used_only_where_they_are_named(opened: Opened, all_rows: Rows, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "m.jsonl", {"video": "a.mp4", "start": 1, "end": 2})
    plain = opened(path)
    assert (plain.columns.start, plain.columns.end) == (None, None)
    (row,) = all_rows(plain)
    assert row.keys().isdisjoint({"start", "end"})
    (kept,) = all_rows(opened(path, columns={"start": "start"}, keep=["start"]))
    assert (kept["start"], kept["keep"]) == (1.0, {"start": 1})


def test_a_row_whose_seconds_are_none_says_so_and_costs_no_other(
    opened: Opened, all_rows: Rows, tmp_path: Path
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(
        '{"video": "a.mp4", "from": -1}\n'
        '{"video": "a.mp4", "from": "soon", "to": [2]}\n'
        '{"video": "a.mp4", "from": NaN}\n'
        '{"video": "a.mp4", "from": true}\n'
        '{"image": "a.png", "to": 3}\n'
        '{"image": "a.png"}\n'
        '{"image": "a.png", "video": "a.mp4", "from": 3}\n'
        '{"video": 7, "from": 3}\n'
    )
    rows = all_rows(opened(path, columns={"start": "from", "end": "to"}))
    assert [row["error"] for row in rows] == [
        "column 'from' has -1 where seconds from 0 on belong",
        "column 'from' has 'soon' where a number of seconds belongs; "
        "column 'to' has [2] where a number of seconds belongs",
        "column 'from' has nan where seconds from 0 on belong",
        "column 'from' has True where a number of seconds belongs",
        "column 'to' says which part of a video is meant, and the row has no video",
        None,
        None,
        "column 'video' is int 7 where a URI, bytes or {bytes, path} belongs",
    ]


def test_a_manifest_without_them_or_without_videos_is_refused(
    problems: Callable[..., list[str]], tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "m.jsonl", {"image": "a.png", "video": "a.mp4", "starts": 1})
    (lacking,) = problems(path, columns={"start": "start"})
    assert "manifest.columns.start: the manifest has no column 'start'; did you mean 'starts'" in lacking
    pictures = jsonl(tmp_path / "p.jsonl", {"image": "a.png", "from": 1, "to": 2})
    found = problems(pictures, columns={"start": "from", "end": "to"})
    assert [problem.partition(":")[0] for problem in found] == [
        "manifest.columns.start",
        "manifest.columns.end",
    ]
    assert "no column has videos" in found[0]
    pq.write_table(pa.table({"video": ["a.mp4"], "from": [True]}), tmp_path / "m.parquet")
    (wrong,) = problems(tmp_path / "m.parquet", columns={"start": "from"})
    assert "'from' of m.parquet is bool; seconds are numbers" in wrong


def test_other_columns_make_other_shards_so_that_rows_are_not_taken_for_done(
    opened: Opened, tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "m.jsonl", {"video": "a.mp4", "a": 1, "b": 2})
    chosen: list[dict[str, str]] = [
        {},
        {"start": "a"},
        {"start": "b"},
        {"end": "b"},
        {"start": "a", "end": "b"},
    ]
    names = [shards(opened(path, columns=columns), 10)[0].name for columns in chosen]
    assert len(set(names)) == 5
    assert names[0] == shards(opened(path, columns={"video": "video"}), 10)[0].name
