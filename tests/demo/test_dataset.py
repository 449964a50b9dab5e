"""The sample dataset is whole, true to its manifest, and made the same again."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

import demo
from demo.make_dataset import make_dataset

SHIPPED = Path(demo.__file__).parent / "dataset" / "manifest.jsonl"
QUESTIONS = {
    "shapes": "Describe this image.",
    "text": "Read the text.",
    "video": "Describe this video.",
}


def read_rows(manifest: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in manifest.read_text().splitlines()]


def test_the_shipped_rows_are_as_announced() -> None:
    rows = read_rows(SHIPPED)
    kinds = Counter(row["id"].split("-")[0] for row in rows)
    assert kinds == {"shapes": 72, "text": 24, "video": 16}
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({row["answer"] for row in rows}) == len(rows)
    for row in rows:
        assert row["question"] == QUESTIONS[row["id"].split("-")[0]]
        assert ("image" in row) != ("video" in row)


def test_the_shipped_files_are_those_of_the_manifest_and_small() -> None:
    rows = read_rows(SHIPPED)
    named = {row.get("image") or row["video"] for row in rows}
    files = [path for path in SHIPPED.parent.rglob("*") if path.is_file() and path != SHIPPED]
    assert named == {path.relative_to(SHIPPED.parent).as_posix() for path in files}
    assert len({path.read_bytes() for path in files}) == len(files)
    assert sum(path.stat().st_size for path in files) < 2_000_000


def test_the_shipped_pictures_decode_in_three_formats() -> None:
    formats = set()
    for row in read_rows(SHIPPED):
        if "image" in row:
            with Image.open(SHIPPED.parent / row["image"]) as image:
                image.load()
                formats.add(image.format)
                assert min(image.size) >= 64 and max(image.size) <= 448
    assert formats == {"JPEG", "PNG", "WEBP"}


def test_the_shipped_videos_decode() -> None:
    decord = pytest.importorskip("decord")
    for row in read_rows(SHIPPED):
        if "video" in row:
            reader = decord.VideoReader(str(SHIPPED.parent / row["video"]))
            frames = reader.get_batch(range(len(reader))).asnumpy()
            assert frames.shape[0] == 8 and frames.shape[3] == 3
            assert reader.get_avg_fps() == pytest.approx(2.0)


def test_the_same_arguments_make_the_same_dataset(tmp_path: Path) -> None:
    first, second, other = (
        make_dataset(tmp_path / name, shapes=12, texts=4, videos=0, seed=seed)
        for name, seed in (("first", 1), ("second", 1), ("other", 2))
    )
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()
    for row in read_rows(first):
        assert (first.parent / row["image"]).read_bytes() == (second.parent / row["image"]).read_bytes()


def test_three_hundred_pictures_have_three_hundred_answers(tmp_path: Path) -> None:
    rows = read_rows(make_dataset(tmp_path, shapes=260, texts=40, videos=0, seed=3))
    assert len({row["answer"] for row in rows}) == 300
    assert all((tmp_path / row["image"]).is_file() for row in rows)


def test_videos_without_pyav_are_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(RuntimeError, match="pip install av"):
        make_dataset(tmp_path, shapes=0, texts=0, videos=1, seed=0)
