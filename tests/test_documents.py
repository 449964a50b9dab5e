"""Counting the pages of a manifest's documents when a run is planned."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption

from pipeline.config import MediaConfig, RunConfig
from pipeline.documents import paged
from pipeline.errors import Code, ConfigError, ItemError
from pipeline.manifest import Manifest, open_manifest, read, shards
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec
from pipeline.storage import Fetched, Storage
from tests.media.documents import filled, pdf, tiff


@dataclass(frozen=True)
class Watched(Storage):
    """A storage that notes what is fetched, and cannot fetch what is `down`."""

    fetched: list[str] = field(default_factory=list)
    down: set[str] = field(default_factory=set)

    def fetch(self, uri: str, max_bytes: int) -> Fetched:
        self._check(uri)
        self.fetched.append(uri.rpartition("/")[2])
        return super().fetch(uri, max_bytes)

    def version(self, uri: str) -> str | None:
        self._check(uri)
        return super().version(uri)

    def _check(self, uri: str) -> None:
        if uri.rpartition("/")[2] in self.down:
            raise ItemError(Code.FETCH_FAILED, f"{uri}: the store does not answer")


@pytest.fixture
def storage(tmp_path: Path) -> Watched:
    return Watched(root=str(tmp_path))


def document(pages: int) -> bytes:
    return pdf(*[filled("red", 0, 0, 9, 9)] * pages)


def planned(
    storage: Storage, manifest: Path, columns: dict[str, str] | None = None, **document: Any
) -> Manifest:
    config = RunConfig.model_validate(
        {
            "manifest": {"uri": str(manifest), "columns": columns or {}},
            "model": {"type": "qwen2_5_vl"},
            "prompt": "?",
            "media": {"document": document},
            "output": {"uri": f"{manifest.parent}/out"},
        }
    )
    loader = MediaLoader.of(MediaConfig(), load_spec("qwen2_5_vl"))
    return paged(storage, config, open_manifest(storage, config.manifest), loader)


def rows(storage: Storage, manifest: Manifest) -> list[dict[str, Any]]:
    (shard,) = shards(manifest, 1000)
    (table,) = read(storage, manifest, shard, [(shard.start, shard.stop)])
    return table.to_pylist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three documents, one of them damaged, and a picture."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.pdf").write_bytes(document(2))
    (files / "b.pdf").write_bytes(b"%PDF-1.7\nnothing\nstartxref\n9\n%%EOF")
    (files / "c.pdf").write_bytes(document(3))
    (files / "d.png").touch()
    return files


def test_every_page_is_a_row_and_a_damaged_document_is_one(storage: Watched, folder: Path) -> None:
    found = rows(storage, planned(storage, folder))
    assert [(row["id"], row["images"][0]["uri"]) for row in found] == [
        ("a.pdf#page=1", f"{folder}/a.pdf#page=1"),
        ("a.pdf#page=2", f"{folder}/a.pdf#page=2"),
        ("b.pdf", f"{folder}/b.pdf#page=0"),
        ("c.pdf#page=1", f"{folder}/c.pdf#page=1"),
        ("c.pdf#page=2", f"{folder}/c.pdf#page=2"),
        ("c.pdf#page=3", f"{folder}/c.pdf#page=3"),
        ("d.png", f"{folder}/d.png"),
    ]


def test_what_was_counted_is_not_read_again_until_it_changes(storage: Watched, folder: Path) -> None:
    first = planned(storage, folder)
    assert sorted(storage.fetched) == ["a.pdf", "b.pdf", "c.pdf"]
    storage.fetched.clear()
    again = planned(storage, folder)
    assert storage.fetched == ["b.pdf"]
    assert again.files[0].identity == first.files[0].identity
    storage.fetched.clear()
    (folder / "a.pdf").write_bytes(document(4))
    changed = planned(storage, folder)
    assert sorted(storage.fetched) == ["a.pdf", "b.pdf"]
    assert changed.rows == first.rows + 2


def test_shards_have_other_names_once_a_row_may_be_another_page(storage: Watched, tmp_path: Path) -> None:
    for name, pages in (("a.pdf", 1), ("b.pdf", 3)):
        (tmp_path / name).write_bytes(document(pages))
    manifest = tmp_path / "m.jsonl"
    manifest.write_text('{"pdf": "a.pdf"}\n{"pdf": "b.pdf"}\n')

    def names(pages: str | None = None) -> list[str]:
        made = planned(storage, manifest, {"document": "pdf"}, pages=pages)
        return [shard.name for shard in shards(made, 2)]

    before = names()
    assert names() == before
    assert len(before) == 2
    assert not set(names("1-2")) & set(before)
    (tmp_path / "a.pdf").write_bytes(document(2))
    (tmp_path / "b.pdf").write_bytes(document(2))
    assert not set(names()) & set(before)


def test_a_store_that_is_down_ends_the_plan_and_one_bad_document_does_not(
    storage: Watched, tmp_path: Path
) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.pdf").write_bytes(document(2))
    storage.down.update(f"{number:02}.pdf" for number in range(3))
    with pytest.raises(ConfigError) as refused:
        planned(storage, tmp_path / "*.pdf")
    assert "3 of 40 documents cannot be read now" in refused.value.problems[0]
    storage.down.remove("02.pdf")
    assert planned(storage, tmp_path / "*.pdf").rows == 2 * 38 + 2
    storage.down.add("30.pdf")  # counted before: it keeps its rows
    assert planned(storage, tmp_path / "*.pdf").rows == 2 * 38 + 2


def test_pages_and_their_number_are_bounded(storage: Watched, folder: Path) -> None:
    chosen = planned(storage, folder, pages="2-")
    assert [row["id"] for row in rows(storage, chosen)] == [
        "a.pdf#page=2", "b.pdf", "c.pdf#page=2", "c.pdf#page=3", "d.png",
    ]  # fmt: skip
    few = planned(storage, folder, max_pages=2)
    assert [row["id"] for row in rows(storage, few)] == [
        "a.pdf#page=1",
        "a.pdf#page=2",
        "b.pdf",
        "c.pdf",
        "d.png",
    ]
    with pytest.raises(ConfigError) as refused:
        planned(storage, folder, pages="0")
    assert refused.value.problems[0].startswith("media.document.pages: '0'")


def test_rows_of_a_manifest_are_documents_of_any_kind(storage: Watched, tmp_path: Path) -> None:
    locked = pdf(*[filled("red", 0, 0, 9, 9)] * 2, encrypt=StandardEncryption("pw", "owner", strength=128))
    (tmp_path / "locked.pdf").write_bytes(locked)
    (tmp_path / "scan.tif").write_bytes(tiff(["red", "blue", "white"]))
    manifest = tmp_path / "m.jsonl"
    lines = [
        {"id": "open", "doc": "locked.pdf", "secret": "pw"},
        {"id": "shut", "doc": "locked.pdf", "secret": "no"},
        {"id": "scan", "doc": "scan.tif"},
        {"id": "none"},
        {"id": "gone", "doc": "gone.pdf"},
    ]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = rows(storage, planned(storage, manifest, {"document": "doc", "password": "secret"}))
    assert [row["id"] for row in found] == [
        "open#page=1", "open#page=2", "shut#page=1", "shut#page=2",
        "scan#page=1", "scan#page=2", "scan#page=3", "none", "gone",
    ]  # fmt: skip
    assert os.listdir(tmp_path / "out") == [".documents"]
    assert b"pw" not in (tmp_path / "out/.documents/pages.parquet").read_bytes()
