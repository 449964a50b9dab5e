"""Folders as Hugging Face's datasets lays them out, and as img2dataset does."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.manifest.tars import python_tar


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_a_dataset_repository_of_parquet(opened, all_rows, tmp_path):
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    touch(tmp_path, "README.md", ".gitattributes", "dataset_infos.json")
    for name, payload in (("data/test-00000-of-00001", b"t"), ("data/train-00000-of-00001", b"u")):
        (tmp_path / "data").mkdir(exist_ok=True)
        table = pa.table({"image": pa.array([{"bytes": payload, "path": "1.png"}], image), "label": [3]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    manifest = opened(tmp_path, keep=["label"])
    assert [(row["id"], row["images"], row["keep"]) for row in all_rows(manifest)] == [
        ("data/test-00000-of-00001.parquet#0", [{"uri": "1.png", "data": b"t"}], {"label": 3}),
        ("data/train-00000-of-00001.parquet#0", [{"uri": "1.png", "data": b"u"}], {"label": 3}),
    ]
    assert opened(tmp_path / "data/train-*.parquet").rows == 1


def write_metadata(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        path.write_text("\n".join(lines))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_folder_of_images_with_metadata(opened, all_rows, tmp_path, form):
    touch(tmp_path, "train/1.jpg", "train/sub/2.png", "test/3.jpg", "notes.md")
    write_metadata(tmp_path / f"train/metadata.{form}", [
        {"file_name": "sub/2.png", "text": "two"}, {"file_name": "1.jpg", "text": "one"},
    ])  # fmt: skip
    write_metadata(tmp_path / f"test/metadata.{form}", [{"file_name": "3.jpg", "text": "three"}])
    manifest = opened(tmp_path, keep=["text"])
    assert (manifest.has_images, manifest.has_videos, manifest.ignored) == (True, False, 1)
    assert [(row["images"][0]["uri"], row["keep"]["text"]) for row in all_rows(manifest)] == [
        (f"{tmp_path}/test/3.jpg", "three"),
        (f"{tmp_path}/train/sub/2.png", "two"),
        (f"{tmp_path}/train/1.jpg", "one"),
    ]


def test_a_folder_of_videos_with_metadata(opened, all_rows, tmp_path):
    touch(tmp_path, "1.mp4", "2.mkv")
    write_metadata(tmp_path / "metadata.jsonl", [{"file_name": "1.mp4"}, {"file_name": "2.mkv"}])
    manifest = opened(tmp_path)
    assert (manifest.has_images, manifest.has_videos) == (False, True)
    assert [m["uri"] for row in all_rows(manifest) for m in row["videos"]] == [
        f"{tmp_path}/1.mp4",
        f"{tmp_path}/2.mkv",
    ]


def test_what_save_to_disk_wrote_is_refused_with_the_cure(problems, tmp_path):
    touch(tmp_path, "data-00000-of-00001.arrow", "dataset_info.json", "state.json")
    (only,) = problems(tmp_path)
    assert "datasets.load_from_disk(FOLDER).to_parquet(FILE)" in only


def test_what_img2dataset_wrote_is_read_from_its_tars(opened, all_rows, problems, tmp_path):
    for number in range(2):
        data = {f"{number}0.jpg": b"x", f"{number}0.json": b"{}", f"{number}0.txt": b"caption"}
        (tmp_path / f"{number:05d}.tar").write_bytes(python_tar(data))
        pq.write_table(pa.table({"url": ["u"], "key": ["k"]}), tmp_path / f"{number:05d}.parquet")
        touch(tmp_path, f"{number:05d}_stats.json")
    manifest = opened(tmp_path, keep=["txt"])
    assert [file.name for file in manifest.files] == ["00000.tar", "00001.tar"]
    assert [row["id"] for row in all_rows(manifest)] == ["00", "10"]
    pq.write_table(pa.table({"url": ["u"]}), tmp_path / "more.parquet")
    (only,) = problems(tmp_path)
    assert "several formats (parquet, tar)" in only


def test_a_list_of_urls_as_img2dataset_takes_it(opened, all_rows, tmp_path):
    rows = [{"url": "https://h/1", "caption": "one"}, {"url": "https://h/2", "caption": "two"}]
    for form in ("jsonl", "csv", "parquet"):
        write_metadata(tmp_path / f"list.{form}", rows)
        found = all_rows(opened(tmp_path / f"list.{form}", keep=["caption"]))
        assert [(row["images"], row["videos"], row["keep"]) for row in found] == [
            ([{"uri": row["url"], "data": None}], [], {"caption": row["caption"]}) for row in rows
        ]
