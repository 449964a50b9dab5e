"""Indexes beside tars: used instead of a walk, and refused where they do not fit."""

from __future__ import annotations

import tarfile

import pytest

from pipeline.errors import ConfigError
from pipeline.manifest import tar_file
from pipeline.manifest.tar_index import parse_index
from tests.manifest.tars import python_tar

MEMBERS = {f"{'n' * (n % 3 * 60)}{n:03d}.{e}": b"%d" % n * (n + 1) for n in range(30) for e in ("jpg", "txt")}


def wds2idx(path):
    """The index as DALI's wds2idx writes it, by Python's tarfile."""
    lines: dict[str, list[str]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            key, _, extension = member.name.partition(".")
            lines.setdefault(key, []).append(f"{extension} {member.offset_data} {member.size} {member.name}")
    return "\n".join([f"v1.2 {len(lines)}", *map(" ".join, lines.values())]) + "\n"


@pytest.fixture
def tar(tmp_path):
    (tmp_path / "m.tar").write_bytes(python_tar(MEMBERS))
    return tmp_path / "m.tar"


@pytest.mark.parametrize("name", ["m.idx", "m.tar.idx"])
def test_an_indexed_tar_is_not_walked_through(opened, all_rows, tar, name, monkeypatch):
    walked = all_rows(opened(tar, keep=["txt"]))
    assert len(walked) == 30
    (tar.parent / name).write_text(wds2idx(tar))
    monkeypatch.setattr(tar_file, "_walk", None)
    for seed in range(8):
        assert all_rows(opened(tar, keep=["txt"]), seed) == walked
    assert all_rows(opened(tar.parent, keep=["txt"])) == walked


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda text: "v9" + text[4:], "begins with 'v9 30'"),
        (lambda text: text + "jpg 0 0 x\n", "has 31 lines of samples"),
        (lambda text: text.replace("jpg ", "jpg -", 1), "with 1 bytes at byte -512"),
        (lambda text: text.replace("jpg 512 1", "jpg 512 99999999", 1), "with 99999999 bytes at byte 512"),
        (lambda text: text.replace("jpg 512 1", "jpg 513 1", 1), "with 1 bytes at byte 513"),
        (lambda text: text.replace("jpg 512 1", "jpg 512 x", 1), "invalid literal"),
        (lambda text: text.replace("000.jpg", "a b", 1), "no sample (a name with spaces?)"),
        (lambda text: "", "not enough values"),
        (lambda text: "v1.2 1\njpg 512 1 x jpg 512 1 x", "with 1 bytes at byte 512"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(problems, tar, edit, reason):
    index = tar.with_name("m.idx")
    index.write_text(edit(wds2idx(tar)))
    (only,) = problems(tar)
    assert reason in only
    assert f"delete {index}, or make it again" in only


def test_an_index_of_other_samples_is_found_out_when_they_are_read(opened, all_rows, tar):
    _, *lines = wds2idx(tar).splitlines()
    joined = [f"v1.2 {len(lines) - 1}", f"{lines[0]} {lines[1]}", *lines[2:]]
    split = lines[0].split(" ")
    torn = [f"v1.2 {len(lines) + 1}", " ".join(split[:4]), " ".join(split[4:]), *lines[1:]]
    for wrong in (joined, torn):
        tar.with_name("m.idx").write_text("\n".join(wrong))
        with pytest.raises(ConfigError, match="its samples are not where its index says"):
            all_rows(opened(tar))


def test_version_1_1_has_no_names():
    index = parse_index(b"v1.1 2\njpg 512 3 TXT 1536 600\njpg 3072 1\n", 4096)
    assert (index.samples.starts.to_pylist(), index.samples.end) == ([0, 2560], 3584)
    assert index.extensions == ("jpg", "txt")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"v1.1 1\njpg 0 1\n", "'jpg' with 1 bytes at byte 0"),
        (b"v1.1 1\njpg 512 -1\n", "'jpg' with -1 bytes at byte 512"),
        (b"v1.1 1\njpg 512 4\n", "'jpg' with 4 bytes at byte 512"),
        (b"v1.1 1\njpg 512 1 txt 1024 1\n", "'txt' with 1 bytes at byte 1024"),
    ],
)
def test_members_where_none_can_be_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_index(text, 515)


def test_a_tar_that_ends_with_its_last_payload_may_have_an_index(opened, all_rows, tmp_path):
    (tmp_path / "m.tar").write_bytes(python_tar({"1.jpg": b"abc"})[:515])
    (tmp_path / "m.idx").write_text("v1.1 1\njpg 512 3\n")
    (row,) = all_rows(opened(tmp_path / "m.tar"))
    assert row["images"][0]["data"] == b"abc"


def test_the_index_that_has_the_tars_whole_name_goes_first(opened, tar):
    tar.with_name("m.idx").write_text("no index")
    tar.with_name("m.tar.idx").write_text(wds2idx(tar))
    assert opened(tar).rows == 30


def test_an_index_without_end_is_not_read(problems, tar, monkeypatch):
    monkeypatch.setattr("pipeline.manifest.tar_index.MAX_INDEX_BYTES", 100)
    tar.with_name("m.idx").write_text("x" * 101)
    (only,) = problems(tar)
    assert "its index has 101 bytes; delete " in only


def test_types_of_json_fields_are_known_in_spite_of_an_index(opened, tmp_path):
    (tmp_path / "m.tar").write_bytes(python_tar({"1.jpg": b"a", "1.json": b'{"n": 1}'}))
    (tmp_path / "m.idx").write_text(wds2idx(tmp_path / "m.tar"))
    assert str(opened(tmp_path / "m.tar", keep=["json.n"]).keep.field("json.n").type) == "int64"


@pytest.mark.parametrize(
    "index",
    [
        # Entries of 1024 bytes each: a hidden one, then the samples 1, 2, 3.
        "v1.1 3\nx 512 1\njpg 1536 1\njpg 2560 1 jpg 3584 1\n",
        "v1.1 2\njpg 512 1 jpg 1536 1\njpg 2560 1\n",
        "v1.1 2\nx 512 1\njpg 1536 1\n",
    ],
)
def test_an_index_of_entries_that_are_no_samples_is_found_out(opened, all_rows, tmp_path, index):
    members = {"._0.x": b"0", "1.jpg": b"1", "2.jpg": b"2", "3.jpg": b"3"}
    (tmp_path / "m.tar").write_bytes(python_tar(members))
    (tmp_path / "m.idx").write_text(index)
    if index.startswith("v1.1 2\njpg"):  # what hides before a sample belongs to it
        assert [row["images"][0]["data"] for row in all_rows(opened(tmp_path / "m.tar"))] == [b"1", b"2"]
        return
    with pytest.raises(ConfigError, match="its samples are not where its index says"):
        all_rows(opened(tmp_path / "m.tar"), shard_rows=3)


def test_damage_that_an_index_does_not_know_of_is_told_with_its_place(opened, all_rows, tar):
    tar.with_name("m.idx").write_text(wds2idx(tar))
    data = bytearray(tar.read_bytes())
    data[1024:1536] = b"x" * 512
    tar.write_bytes(data)
    with pytest.raises(ConfigError, match=r"m\.tar: there is no tar header at byte 1024"):
        all_rows(opened(tar))
