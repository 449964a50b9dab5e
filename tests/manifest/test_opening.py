"""Which column plays which role, and what is wrong with a configuration: all of it at once."""

from __future__ import annotations

import pickle

import pytest


@pytest.fixture
def csv_file(tmp_path):
    (tmp_path / "m.csv").write_text("image,image_url,id,text\n/own.jpg,/url.jpg,1,t\n")
    return tmp_path / "m.csv"


def test_a_role_has_its_own_column_unless_another_is_named(opened, all_rows, csv_file):
    columns = opened(csv_file).columns
    assert columns.named() == {"id": "id", "image": "image"}
    manifest = opened(csv_file, columns={"image": "image_url", "question": "text", "id": "text"})
    (row,) = all_rows(manifest)
    assert (row["id"], row["images"][0]["uri"], row["question"]) == ("t", "/url.jpg", "t")


def test_all_problems_at_once(problems, csv_file):
    found = problems(
        csv_file,
        columns={"image": "image_urll", "question": "prompt"},
        keep=["txet", "id", "text", "text"],
        reserved=("id", "task"),
    )
    there = "(its columns: image, image_url, id, text)"
    assert found == [
        "manifest.columns.image: the manifest has no column 'image_urll'; "
        f"did you mean 'image_url' or 'image'? {there}",
        f"manifest.columns.question: the manifest has no column 'prompt' {there}",
        f"manifest.keep: the manifest has no column 'txet'; did you mean 'text'? {there}",
        "manifest.keep: 'id' is the name of a result column; rename it in the manifest",
        "manifest.keep: 'text' is named twice",
    ]


def test_no_media_column(problems, tmp_path):
    (tmp_path / "m.csv").write_text("id,link\n1,/x.jpg\n")
    assert problems(tmp_path / "m.csv") == [
        "manifest.columns: no column has media; name one as image, images, video or document "
        "(its columns: id, link)"
    ]


@pytest.mark.parametrize("name", ["image_url", "url", "file_name"])
def test_a_customary_name_is_an_image_where_no_column_has_a_roles_name(opened, tmp_path, name):
    (tmp_path / "m.csv").write_text(f"id,caption,{name}\n1,c,/x.jpg\n")
    assert opened(tmp_path / "m.csv").columns.named() == {"id": "id", "image": name}
    (tmp_path / "m.csv").write_text(f"id,video,{name}\n1,c,/x.jpg\n")
    assert opened(tmp_path / "m.csv").columns.named() == {"id": "id", "video": "video"}


def test_one_column_in_two_roles(problems, csv_file):
    (only,) = problems(csv_file, columns={"image": "image", "video": "image"})
    assert only == "manifest.columns: 'image' is named for two roles with media"


@pytest.mark.parametrize("text", ["", "\n\n", "image\n"])
def test_no_rows(problems, tmp_path, text):
    (tmp_path / "m.csv").write_text(text)
    assert problems(tmp_path / "m.csv") == [f"manifest.uri: {tmp_path}/m.csv has no rows"]


def test_files_have_to_agree(problems, opened, tmp_path):
    (tmp_path / "1.csv").write_text("image,question\na,b\n")
    (tmp_path / "2.csv").write_text("image\na\n")
    (tmp_path / "3.csv").write_text("image,image,question\na,b,c\n")
    assert problems(tmp_path) == [
        "manifest.uri: 2.csv, unlike other files, has no column 'question' (its columns: image)",
        "manifest.uri: 3.csv has the column 'image' more than once",
    ]


def test_json_objects_may_leave_out_a_column_but_a_file_not_its_media(problems, opened, tmp_path):
    (tmp_path / "1.jsonl").write_text('{"image": "a", "question": "b"}\n')
    (tmp_path / "2.jsonl").write_text('{"image": "a"}\n')
    assert opened(tmp_path).columns.named() == {"image": "image", "question": "question"}
    (tmp_path / "3.jsonl").write_text('{"imgae": "a"}\n')
    (only,) = problems(tmp_path)
    assert only.startswith("manifest.uri: 3.jsonl has no column 'image'; did you mean 'imgae'?")


def test_a_manifest_is_small(opened, tmp_path):
    (tmp_path / "m.jsonl").write_text('{"image": "a"}\n' * 300_000)
    manifest = opened(tmp_path / "m.jsonl")
    assert manifest.rows == 300_000
    assert len(pickle.dumps(manifest)) < 40_000
    assert len(pickle.dumps(manifest.for_workers())) < 3_000
