"""Manifests of documents, read as rows of pages, whatever their format and however they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.manifest import Manifest
from pipeline.manifest.pages import NOT_A_DOCUMENT, PageIndex, PageSelection
from pipeline.manifest.rows import MAX_DOCUMENT_BYTES

PAGES = [3, 1, NOT_A_DOCUMENT, 0, 2, 5] * 4


def with_pages(manifest: Manifest, pages: list[int]) -> Manifest:
    (file,) = manifest.files
    index = PageIndex.of(pa.array(pages, pa.int32()), PageSelection())
    return replace(manifest, files=(replace(file, rows=index.rows, pages=index),))


def source_rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"item-{i}",
            "pdf": None if count == NOT_A_DOCUMENT else f"{i}.pdf",
            "image": "a.png",
            "pw": f"pw{i}",
        }
        for i, count in enumerate(PAGES)
    ]


def expected(folder: str) -> list[dict[str, Any]]:
    """The rows as this test's own words make them: (id, URIs of images, password, kept column)."""
    rows = []
    for i, count in enumerate(PAGES):
        picture = f"{folder}/a.png"
        if count == NOT_A_DOCUMENT:
            rows.append((f"item-{i}", [picture]))
        elif count == 0:
            rows.append((f"item-{i}", [f"{folder}/{i}.pdf#page=0", picture]))
        else:
            rows += [
                (f"item-{i}#page={n}", [f"{folder}/{i}.pdf#page={n}", picture]) for n in range(1, count + 1)
            ]
    return [
        {"row": n, "id": name, "uris": uris, "password": f"pw{name.split('#')[0].removeprefix('item-')}"}
        for n, (name, uris) in enumerate(rows)
    ]


def write(path: Any, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(value or "" for value in row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("seed", range(4))
def test_every_page_is_one_row_however_the_shards_are_cut(
    opened: Callable[..., Manifest],
    all_rows: Callable[..., list[dict[str, Any]]],
    tmp_path: Any,
    suffix: str,
    seed: int,
) -> None:
    path = tmp_path / f"m.{suffix}"
    write(path, source_rows())
    manifest = with_pages(opened(path, columns={"document": "pdf", "password": "pw"}, keep=["image"]), PAGES)
    rows = all_rows(manifest, seed=seed)
    found = [
        {
            "row": row["row"],
            "id": row["id"],
            "uris": [one["uri"] for one in row["images"]],
            "password": row["password"],
        }
        for row in rows
    ]
    assert found == expected(str(tmp_path))
    assert {row["keep"]["image"] for row in rows} == {"a.png"}


def test_bytes_travel_with_each_page(
    opened: Callable[..., Manifest], all_rows: Callable[..., list[dict[str, Any]]], tmp_path: Any
) -> None:
    rows = [{"pdf": {"bytes": b"first", "path": "x.pdf"}}, {"pdf": {"bytes": b"second", "path": None}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    manifest = with_pages(opened(tmp_path / "m.parquet", columns={"document": "pdf"}), [2, 1])
    assert [row["images"] for row in all_rows(manifest)] == [
        [{"uri": "x.pdf#page=1", "data": b"first"}],
        [{"uri": "x.pdf#page=2", "data": b"first"}],
        [{"uri": "#page=1", "data": b"second"}],
    ]


def test_large_bytes_and_strange_passwords_are_wrong_rows_that_do_not_show_them(
    opened: Callable[..., Manifest], all_rows: Callable[..., list[dict[str, Any]]], tmp_path: Any
) -> None:
    large = pa.table({"pdf": pa.array([b"\0" * (MAX_DOCUMENT_BYTES + 1), b"small"], pa.binary())})
    pq.write_table(large, tmp_path / "m.parquet")
    first, second = all_rows(opened(tmp_path / "m.parquet", columns={"document": "pdf"}))
    assert "above 16 MiB give its URI" in first["error"]
    assert first["images"] == []
    assert (second["error"], second["images"]) == (None, [{"uri": "#page=0", "data": b"small"}])

    (tmp_path / "m.jsonl").write_text(json.dumps({"pdf": "a.pdf", "pw": ["hunter2"]}) + "\n")
    (row,) = all_rows(opened(tmp_path / "m.jsonl", columns={"document": "pdf", "password": "pw"}))
    assert row["error"] == "column 'pw' has a password that is not text"


def test_a_page_that_the_manifest_names_is_taken_as_it_is(
    opened: Callable[..., Manifest], all_rows: Callable[..., list[dict[str, Any]]], tmp_path: Any
) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({"id": "one", "pdf": "a.pdf#page=7"}) + "\n")
    (row,) = all_rows(opened(tmp_path / "m.jsonl", columns={"document": "pdf"}))
    assert row["images"] == [{"uri": f"{tmp_path}/a.pdf#page=7", "data": None}]


def test_pdf_files_of_a_folder_are_documents(
    opened: Callable[..., Manifest], all_rows: Callable[..., list[dict[str, Any]]], tmp_path: Any
) -> None:
    for name in ("b.PDF", "a.png", "c.mp4"):
        (tmp_path / name).touch()
    manifest = opened(tmp_path)
    assert (manifest.has_documents, manifest.has_images, manifest.has_videos) == (True, True, True)
    rows = all_rows(with_pages(manifest, [NOT_A_DOCUMENT, 2, NOT_A_DOCUMENT]))
    assert [row["id"] for row in rows] == ["a.png", "b.PDF#page=1", "b.PDF#page=2", "c.mp4"]
    assert [one["uri"] for one in rows[2]["images"]] == [f"{tmp_path}/b.PDF#page=2"]


def test_passwords_and_documents_are_used_only_where_they_are_named(
    opened: Callable[..., Manifest], problems: Callable[..., list[str]], tmp_path: Any
) -> None:
    (tmp_path / "m.jsonl").write_text(
        json.dumps({"image": "a.png", "document": "about it", "password": "x"}) + "\n"
    )
    manifest = opened(tmp_path / "m.jsonl")
    assert (manifest.columns.document, manifest.columns.password, manifest.has_documents) == (None, None, False)
    (problem,) = problems(tmp_path / "m.jsonl", columns={"password": "password"}, keep=["password"])
    assert "has the passwords" in problem
