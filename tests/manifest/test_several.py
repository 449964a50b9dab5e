"""Several URIs as one manifest: lists, braces, their order and names, and what does not go together."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError
from pipeline.manifest import several
from pipeline.manifest.several import expand_braces
from tests.manifest.tars import python_tar


def write(path, *images):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"image": "{image}", "n": 1}}\n' for image in images))


def test_a_list_keeps_its_order_and_names_files_below_the_common_folder(opened, all_rows, tmp_path):
    write(tmp_path / "d/z/m.jsonl", "1.jpg")
    write(tmp_path / "d/a/2.jsonl", "2.jpg")
    write(tmp_path / "d/a/1.jsonl", "3.jpg")
    manifest = opened([tmp_path / "d/z/m.jsonl", tmp_path / "d/a"])
    assert [file.name for file in manifest.files] == ["z/m.jsonl", "a/1.jsonl", "a/2.jsonl"]
    rows = all_rows(manifest)
    assert [row["id"] for row in rows] == ["z/m.jsonl#0", "a/1.jsonl#0", "a/2.jsonl#0"]
    assert [row["images"][0]["uri"] for row in rows] == [
        f"{tmp_path}/d/{path}" for path in ("z/1.jpg", "a/3.jpg", "a/2.jpg")
    ]
    assert opened([tmp_path / "d/a"]).files[0].name == "1.jsonl"


def test_a_file_named_twice_is_refused(problems, tmp_path):
    for n in range(5):
        write(tmp_path / f"{n}.jsonl", "1.jpg")
    found = problems([tmp_path / "*.jsonl", tmp_path, tmp_path / "0.jsonl"])
    assert found == [f"manifest.uri: {tmp_path}/{n}.jsonl is named twice (and 2 more)" for n in range(3)]


def test_every_uri_that_is_wrong_is_told(problems, tmp_path):
    write(tmp_path / "1.jsonl", "1.jpg")
    (tmp_path / "x").mkdir()
    found = problems([tmp_path / "no.csv", tmp_path / "1.jsonl", tmp_path / "x"])
    assert [problem.partition(f"{tmp_path}/")[2][:6] for problem in found] == ["no.csv", "x has "]


def test_formats_mix_in_a_list_where_their_columns_agree(opened, all_rows, problems, tmp_path):
    write(tmp_path / "1.jsonl", "a.jpg")
    pq.write_table(pa.table({"image": ["b.jpg"], "n": pa.array([2], pa.int32())}), tmp_path / "2.parquet")
    (tmp_path / "3.csv").write_text("image,n\nc.jpg,3\n")
    manifest = opened([tmp_path / "2.parquet", tmp_path / "1.jsonl"], keep=["n"])
    assert [(row["images"][0]["uri"][-5:], row["keep"]) for row in all_rows(manifest)] == [
        ("b.jpg", {"n": 2}),
        ("a.jpg", {"n": 1}),
    ]
    assert opened([tmp_path / "3.csv", tmp_path / "1.jsonl"]).rows == 2
    (only,) = problems([tmp_path / "3.csv", tmp_path / "1.jsonl"], keep=["n"])
    assert "string in 3.csv; int64 in 1.jsonl" in only


def test_media_and_tars_do_not_mix_with_rows(problems, tmp_path):
    write(tmp_path / "m/1.jsonl", "1.jpg")
    (tmp_path / "p").mkdir()
    (tmp_path / "p/1.jpg").write_bytes(b"x")
    (tmp_path / "t.tar").write_bytes(python_tar({"1.jpg": b"x"}))
    for uris in (["m", "p"], ["t.tar", "p"], ["m", "t.tar"]):
        (only,) = problems([tmp_path / uri for uri in uris])
        assert "do not go together" in only


def test_several_folders_of_media(opened, all_rows, tmp_path):
    for name in ("a/1.jpg", "b/c/1.jpg", "b/2.mp4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    manifest = opened([tmp_path / "b", tmp_path / "a"])
    rows = all_rows(manifest)
    assert [row["id"] for row in rows] == ["b/2.mp4", "b/c/1.jpg", "a/1.jpg"]
    assert [m["uri"] for row in rows for m in row["images"] + row["videos"]] == [
        f"{tmp_path}/{row['id']}" for row in rows
    ]
    assert (manifest.has_images, manifest.has_videos) == (True, True)


def test_braces(opened, problems, tmp_path):
    for name in ("train-08", "train-09", "train-10", "val-08"):
        (tmp_path / f"{name}.tar").write_bytes(python_tar({f"{name}.jpg": b"x"}))
    manifest = opened(tmp_path / "train-{08..10}.tar")
    assert [file.name for file in manifest.files] == ["train-08.tar", "train-09.tar", "train-10.tar"]
    assert problems(tmp_path / "{3..1}.tar") == ["manifest.uri: it stands for no URI at all"]
    assert problems(tmp_path / "{val,train}-{09..09}.tar") == [
        f"manifest.uri: {tmp_path}/val-09.tar does not exist"
    ]


@pytest.mark.parametrize(
    ("uri", "expanded"),
    [
        ("s3://b/x.tar", ["s3://b/x.tar"]),
        ("{9..11}", ["9", "10", "11"]),
        ("{009..011}", ["009", "010", "011"]),
        ("{a,b}{1..2}", ["a1", "a2", "b1", "b2"]),
        ("x{,y}", ["x", "xy"]),
        ("{a}", ["{a}"]),
        ("{2..1}", []),
    ],
)
def test_expansion_is_the_shells(uri, expanded):
    assert expand_braces(uri) == expanded


@pytest.mark.parametrize("uri", ["{0..999999999999}", "{0..99999}{0..99999}", "{0,1}" * 60])
def test_expansion_is_bounded(uri):
    with pytest.raises(ConfigError, match="stands for more than 100,000 URIs"):
        expand_braces(uri)


def test_as_many_uris_as_allowed():
    uris = expand_braces("{00001..100000}")
    assert (len(uris), uris[0], uris[-1]) == (100_000, "00001", "100000")


def test_three_files_named_twice_are_all_of_them(problems, tmp_path):
    for n in range(3):
        write(tmp_path / f"{n}.jsonl", "1.jpg")
    found = problems([tmp_path / "*.jsonl", tmp_path])
    assert found == [f"manifest.uri: {tmp_path}/{n}.jsonl is named twice" for n in range(3)]


@pytest.mark.parametrize(
    ("bases", "common"),
    [
        (["s3://a/x", "s3://a/y/z"], "s3://a"),
        (["s3://a/x", "s3://b/x"], ""),
        (["s3://a", "gs://a"], ""),
        (["/d/a", "/d/b"], "/d"),
        (["/a", "/b"], ""),
    ],
)
def test_the_folder_above_all(bases, common):
    assert several._common(bases) == common
