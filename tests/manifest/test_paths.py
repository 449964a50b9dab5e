"""Dotted paths into structs and objects, as columns of roles and columns passed through."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.manifest.paths import type_at, value_at

ROWS = [
    {"meta": {"key": "a", "deep": {"n": 1}}, "media": {"image": {"url": "/1.jpg"}}},
    {"meta": {"key": "b", "deep": None}, "media": {"image": {"url": "/2.jpg"}}},
    {"meta": None, "media": {"image": {"url": "/3.jpg"}}},
]
CONFIG = {"columns": {"image": "media.image.url", "id": "meta.key"}, "keep": ["meta.deep.n", "meta.deep"]}


def test_parquet_and_jsonl_are_read_alike(opened, all_rows, tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "m.parquet", row_group_size=2)
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    for name in ("m.parquet", "m.jsonl"):
        manifest = opened(tmp_path / name, **CONFIG)
        assert {field.name: str(field.type) for field in manifest.keep} == {
            "meta.deep.n": "int64",
            "meta.deep": "struct<n: int64>",
        }
        rows = all_rows(manifest)
        assert [(row["id"], row["images"][0]["uri"], row["error"]) for row in rows] == [
            ("a", "/1.jpg", None),
            ("b", "/2.jpg", None),
            (f"{name}#2", "/3.jpg", None),
        ]
        assert [row["keep"]["meta.deep.n"] for row in rows] == [1, None, None]
        assert rows[0]["keep"]["meta.deep"] == {"n": 1}


def test_only_the_fields_that_are_used_are_read(opened, all_rows, tmp_path):
    table = pa.table({"m": [{"url": "/x.jpg", "list": [{"url": "/y.jpg"}], "bad": b"\xff"}]})
    pq.write_table(table, tmp_path / "m.parquet")
    (row,) = all_rows(opened(tmp_path / "m.parquet", columns={"image": "m.url"}))
    assert row["images"][0]["uri"] == "/x.jpg"


def test_a_column_of_the_whole_name_goes_first(opened, all_rows, tmp_path):
    rows = [{"a": {"b": "/inner.jpg"}, "a.b": "/outer.jpg"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    (tmp_path / "m.jsonl").write_text(json.dumps(rows[0]))
    for name in ("m.parquet", "m.jsonl"):
        (row,) = all_rows(opened(tmp_path / name, columns={"image": "a.b"}))
        assert row["images"][0]["uri"] == "/outer.jpg"


def test_paths_that_lead_nowhere_are_refused(problems, tmp_path):
    (tmp_path / "m.jsonl").write_text('{"a": {"b": [{"c": "x"}], "d": 1}, "image": "x"}\n')
    for path in ("a.x", "a.b.c", "a.d.e", "x.y", "a."):
        (only,) = problems(tmp_path / "m.jsonl", columns={"image": path})
        assert f"has no column {path!r}" in only
    (only,) = problems(tmp_path / "m.jsonl", keep=["a.x"])
    assert "manifest.keep: the manifest has no column 'a.x'" in only


def test_a_type_that_does_not_suit_is_refused(problems, tmp_path):
    pq.write_table(pa.table({"m": [{"n": 5}], "image": ["x"]}), tmp_path / "m.parquet")
    (only,) = problems(tmp_path / "m.parquet", columns={"video": "m.n"})
    assert "manifest.columns.video: 'm.n' of m.parquet is int64" in only


def test_a_path_ends_where_there_is_no_object():
    assert [value_at({"a": value}, "a.b") for value in ([1], "x", 5, None, {"b": 2})] == [None] * 4 + [2]
    struct = pa.struct([("x", pa.int8())])
    assert type_at(pa.schema([("m", struct)]), "m.x") == pa.int8()
    assert type_at(pa.schema([("m", struct), ("m", struct)]), "m.x") is None  # which one, none can say
