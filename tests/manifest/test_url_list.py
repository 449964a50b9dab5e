"""Lists of URIs: a text file with one in each line."""

from __future__ import annotations

import random


def test_each_line_is_an_item(opened, all_rows, tmp_path):
    lines = ["https://h/a.jpg", "", "  b.png \r", "s3://b/c.MP4?x=1.jpg", "https://h/d?f=e.mp4", "\t", "e.gif"]
    (tmp_path / "urls.txt").write_text("\n".join(lines))
    manifest = opened(tmp_path / "urls.txt")
    assert (manifest.has_images, manifest.has_videos) == (True, True)
    rows = all_rows(manifest)
    assert [[m["uri"] for m in row["images"]] for row in rows] == [
        ["https://h/a.jpg"], [f"{tmp_path}/b.png"], [], ["https://h/d?f=e.mp4"], [f"{tmp_path}/e.gif"],
    ]  # fmt: skip
    assert [m["uri"] for m in rows[2]["videos"]] == ["s3://b/c.MP4?x=1.jpg"]
    assert [row["id"] for row in rows] == [f"urls.txt#{n}" for n in range(5)]


def test_a_long_list_is_cut_anywhere(opened, all_rows, tmp_path):
    uris = [f"https://h/{random.Random(n).randint(0, 10**9)}.jpg" for n in range(3000)]
    (tmp_path / "urls.txt").write_text("\n".join(uris))
    for seed in range(6):
        rows = all_rows(opened(tmp_path / "urls.txt"), seed)
        assert [row["images"][0]["uri"] for row in rows] == uris


def test_a_line_that_is_no_text_costs_itself(opened, all_rows, tmp_path):
    (tmp_path / "urls.txt").write_bytes(b"a.jpg\n\xff.jpg\nc.jpg\n")
    errors = [row["error"] for row in all_rows(opened(tmp_path / "urls.txt"))]
    assert errors == [None, "the line is no UTF-8: invalid start byte at byte 1", None]


def test_texts_of_a_folder_are_no_lists_unless_a_glob_names_them(opened, tmp_path):
    (tmp_path / "LICENSE.txt").write_text("words")
    (tmp_path / "1.jpg").write_bytes(b"x")
    manifest = opened(tmp_path)
    assert (manifest.rows, manifest.ignored) == (1, 1)
    assert opened(tmp_path / "*.txt").files[0].name == "LICENSE.txt"


def test_a_mark_before_the_first_line_and_a_line_without_end(opened, all_rows, tmp_path):
    long = b"x" * (16 << 20) + b"y"
    (tmp_path / "urls.txt").write_bytes(b"\xef\xbb\xbf/a.jpg\n" + long + b"\n/b.mp4\n")
    rows = all_rows(opened(tmp_path / "urls.txt"))
    assert [m["uri"] for row in rows for m in row["images"] + row["videos"]] == ["/a.jpg", "/b.mp4"]
    assert [row["error"] for row in rows] == [None, "the row has more than 16 MiB", None]
