"""A folder or glob of media files as a manifest."""

from __future__ import annotations

import os
import pickle

import pytest

from pipeline.manifest import read, shards


@pytest.fixture
def folder(tmp_path):
    for name in ("b.JPG", "a/é 100%25.png", "a/clip.MP4", "notes.txt", "a/.hidden.jpg", "c[1].webp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_each_file_is_a_row(opened, all_rows, folder):
    manifest = opened(folder)
    assert (manifest.rows, manifest.ignored, manifest.has_images, manifest.has_videos) == (4, 1, True, True)
    image = {"videos": [], "question": None, "keep": {}, "error": None}

    def uri(path):
        return [{"uri": f"{folder}/{path}", "data": None}]

    assert all_rows(manifest, shard_rows=3) == [
        {"row": 0, "id": "a/clip.MP4", **image, "images": [], "videos": uri("a/clip.MP4")},
        {"row": 1, "id": "a/é 100%25.png", "images": uri("a/é 100%25.png"), **image},
        {"row": 2, "id": "b.JPG", "images": uri("b.JPG"), **image},
        {"row": 3, "id": "c[1].webp", "images": uri("c[1].webp"), **image},
    ]


def test_a_glob_and_a_single_file(opened, all_rows, folder):
    manifest = opened(folder / "*" / "*.png")
    assert (manifest.has_images, manifest.has_videos) == (True, False)
    assert [row["id"] for row in all_rows(manifest)] == ["a/é 100%25.png"]
    (row,) = all_rows(opened(folder / "b.JPG"))
    assert (row["id"], row["images"][0]["uri"]) == ("b.JPG", f"{folder}/b.JPG")


def test_the_fingerprint_follows_every_file(opened, folder):
    prints = [opened(folder).files[0].fingerprint, opened(folder).files[0].fingerprint]
    os.utime(folder / "a/clip.MP4", (1, 1))
    prints.append(opened(folder).files[0].fingerprint)
    (folder / "b.JPG").rename(folder / "c.JPG")
    prints.append(opened(folder).files[0].fingerprint)
    (folder / "new.png").touch()
    prints.append(opened(folder).files[0].fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def test_columns_make_no_sense(problems, folder):
    found = problems(folder, columns={"image": "url"}, keep=["w"])
    assert [problem.partition(":")[0] for problem in found] == ["manifest.columns.image", "manifest.keep"]


def test_a_shard_carries_only_its_own_paths(opened, storage, tmp_path):
    for number in range(3000):
        (tmp_path / f"{number:05d}.jpg").touch()
    manifest = opened(tmp_path)
    shard = shards(manifest, 10)[150]
    assert len(pickle.dumps(shard)) < 2000
    assert len(pickle.dumps(manifest.for_workers())) < 2000
    (table,) = read(storage, manifest.for_workers(), shard, [(1503, 1505)])
    assert table["id"].to_pylist() == ["01503.jpg", "01504.jpg"]
