"""Pages of documents in the prepare stage: one fetch for a batch, each page by itself, secrets unseen."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption

from pipeline.config import ColumnsConfig, ManifestConfig, MediaConfig
from pipeline.identity import media_uuid, page_uuid
from pipeline.manifest import open_manifest, shards
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec
from pipeline.stages.batch import Batch, unpack_media
from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read, Work, work_rows
from pipeline.storage import Fetched, Storage
from tests.media.documents import BLUE, RED, filled, pdf
from tests.media.made import saved

TWO = pdf(filled("red", 0, 0, 144, 72, text="first words"), filled("blue", 0, 0, 144, 72, text="second"))


@dataclass(frozen=True)
class Counting(Storage):
    """A storage that notes what is fetched."""

    fetched: list[str] = field(default_factory=list)

    def fetch(self, uri: str, max_bytes: int) -> Fetched:
        self.fetched.append(uri.rpartition("/")[2])
        return super().fetch(uri, max_bytes)


@pytest.fixture
def storage(tmp_path: Path) -> Counting:
    return Counting(root=str(tmp_path))


@pytest.fixture
def lenient(prepare: Prepare, storage: Counting) -> Prepare:
    """The stage, that takes damaged files and reads text."""
    media = MediaConfig.model_validate({"damaged": "recover", "document": {"dpi": 72}})
    loader = replace(MediaLoader.of(media, load_spec("qwen2_5_vl")), text_chars=50)
    return replace(prepare, storage=storage, loader=loader, max_bytes=10**6, max_question_chars=40)


def prepared(
    prepare: Prepare, folder: Path, rows: list[dict[str, Any]], **columns: str
) -> list[dict[str, Any]]:
    """The items of a manifest with these rows, `media` unpacked."""
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = ManifestConfig(uri=str(path), columns=ColumnsConfig(**columns))
    manifest = open_manifest(prepare.storage, config)
    (shard,) = shards(manifest, 100)
    (work,) = work_rows([Work(shard, ((0, len(rows)),))])
    (row,) = Read(prepare.storage, manifest.for_workers())(work)
    batch = Batch.from_row(prepare(row))
    items = batch.items.drop_columns(["media"]).to_pylist()
    media = unpack_media(batch.items["media"])
    return [{**item, "media": loaded} for item, loaded in zip(items, media, strict=True)]


def test_pages_of_one_document_are_fetched_once_and_told_apart(
    lenient: Prepare, storage: Counting, tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(TWO)
    rows = [{"image": f"a.pdf#page={page}"} for page in (1, 2, 1, 3)]
    first, second, again, none = prepared(lenient, tmp_path, rows)
    assert storage.fetched == ["a.pdf"]
    assert [item["media"][0].pixels[70, 140].tolist() for item in (first, second)] == [RED, BLUE]
    assert first["media_uuids"] == [page_uuid(media_uuid(TWO), 1)]
    assert second["media_uuids"] == [page_uuid(media_uuid(TWO), 2)]
    assert first["media_versions"] != second["media_versions"]
    assert first["item_uuids"] == again["item_uuids"] != second["item_uuids"]
    assert (none["error_code"], none["media"]) == ("page_not_found", [])


def test_the_text_of_all_pages_of_an_item_is_read(lenient: Prepare, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(TWO)
    (tmp_path / "b.png").write_bytes(saved(Image.new("RGB", (9, 9))))
    rows = [{"images": ["a.pdf#page=2", "b.png", "a.pdf#page=1"]}, {"images": ["b.png"]}, {"images": ["c.png"]}]
    texts = [item["page_text"] for item in prepared(lenient, tmp_path, rows, images="images")]
    assert texts == ["second\n\nfirst words", "", None]


def test_a_password_opens_its_own_row_and_is_seen_nowhere(
    lenient: Prepare, storage: Counting, tmp_path: Path
) -> None:
    locked = pdf(filled("red", 0, 0, 144, 72), encrypt=StandardEncryption("geheim", "owner", strength=128))
    (tmp_path / "a.pdf").write_bytes(locked)
    rows = [{"pdf": "a.pdf#page=1", "pw": pw} for pw in ("wrong-one", "geheim", None)]
    items = prepared(lenient, tmp_path, rows, document="pdf", password="pw")
    assert [item["error_code"] for item in items] == ["password_wrong", None, "password_wrong"]
    assert items[1]["media"][0].pixels[30, 70].tolist() == RED
    # Else the answer to the second row, or the failure of the first, would be the third's.
    for names in ("item_uuids", "media_uuids", "media_versions"):
        assert len({item[names][0] for item in items}) == 3
    assert not any(word in repr(items) for word in ("geheim", "wrong-one"))
    assert storage.fetched == ["a.pdf"]


def test_a_damaged_file_that_was_taken_says_so(lenient: Prepare, tmp_path: Path) -> None:
    picture = saved(Image.effect_noise((300, 200), 80), "JPEG")
    (tmp_path / "whole.jpg").write_bytes(picture)
    (tmp_path / "cut.jpg").write_bytes(picture[:-40])
    (tmp_path / "cut.pdf").write_bytes(TWO[: TWO.rindex(b"startxref")])
    names = ("whole.jpg", "cut.jpg", "cut.pdf#page=1", "nowhere.jpg")
    items = prepared(lenient, tmp_path, [{"image": name} for name in names])
    assert [item["recovered"] for item in items] == [False, True, True, None]


def test_a_question_of_too_many_characters_fails_without_travelling(
    lenient: Prepare, storage: Counting, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(saved(Image.new("RGB", (9, 9))))
    rows = [{"image": "a.png", "question": "x" * 40}, {"image": "a.png", "question": "y" * 10_000_000}]
    fine, long = prepared(lenient, tmp_path, rows)
    assert (fine["error_code"], fine["question"]) == (None, "x" * 40)
    assert long["error_code"] == "question_too_long"
    assert "10,000,000" in long["error"]
    assert len(long["question"]) < 300
