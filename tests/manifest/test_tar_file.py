"""WebDataset tars: samples, their columns, and what is read of them."""

from __future__ import annotations

import io
import json
import random
import tarfile

import pytest

from pipeline.manifest import read, shards, tar_file
from pipeline.manifest.tar_entries import Entry, entries
from pipeline.manifest.tar_file import HeaderReads
from pipeline.manifest.tar_rows import reader_of
from pipeline.manifest.window import Window
from tests.manifest.tars import python_tar, write_tar


def media(row):
    return [(m["uri"], m["data"]) for m in row["images"]], [(m["uri"], m["data"]) for m in row["videos"]]


@pytest.mark.parametrize("form", ["gnu", "ustar", "pax", "v7"])
def test_members_are_columns(opened, all_rows, tmp_path, form):
    members = {
        "a/001.jpg": b"one", "a/001.txt": "Äh".encode(), "a/001.json": b'{"n": 1, "deep": {"url": "u"}}',
        "a/002.JSON": b'{"n": 2.5}', "a/002.Png": b"two",
        "003.mp4": b"", "003.cls": b"7", "003.seg.png": b"mask",
    }  # fmt: skip
    write_tar(tmp_path / "m.tar", members, form)
    manifest = opened(tmp_path / "m.tar", keep=["txt", "json.n", "json.deep.url", "cls", "seg.png"])
    assert manifest.columns.named() == {"id": "__key__", "images": "__images__", "video": "__video__"}
    assert {f.name: str(f.type) for f in manifest.keep} == {
        "txt": "string", "json.n": "double", "json.deep.url": "string", "cls": "string",
        "seg.png": "large_binary",
    }  # fmt: skip
    rows = all_rows(manifest)
    assert [(row["id"], *media(row), row["error"]) for row in rows] == [
        ("a/001", [("a/001.jpg", b"one")], [], None),
        ("a/002", [("a/002.Png", b"two")], [], None),
        ("003", [], [("003.mp4", b"")], None),
    ]
    assert [list(row["keep"].values()) for row in rows] == [
        ["Äh", 1.0, "u", None, None],
        [None, 2.5, None, None, None],
        [None, None, None, "7", b"mask"],
    ]


def test_roles_can_be_named(opened, all_rows, tmp_path):
    members = {"1.jpg": b"a", "1.png": b"b", "1.depth.png": b"c", "1.txt": b"What?", "1.json": b'{"k": "key"}'}
    write_tar(tmp_path / "m.tar", members)
    (row,) = all_rows(opened(tmp_path / "m.tar"))
    assert media(row) == ([("1.jpg", b"a"), ("1.png", b"b")], [])
    named = {"image": "depth.png", "question": "txt", "id": "json.k"}
    (row,) = all_rows(opened(tmp_path / "m.tar", columns=named))
    assert (row["id"], row["question"], [m["data"] for m in row["images"]]) == ("key", "What?", [b"c"])


def test_neighbours_with_one_key_are_a_sample_as_webdataset_has_it(opened, all_rows, tmp_path):
    members = {
        "./1.jpg": b"a", "._1.jpg": b"hidden", "README": b"no dot", "__meta__/x.json": b"{}", "1.b.jpg": b"b",
        "d.x/1.jpg": b"c", "2.jpg": b"d", "sub/2.txt": b"e", "2.txt": b"f",
    }  # fmt: skip
    (tmp_path / "m.tar").write_bytes(python_tar(members))
    rows = all_rows(opened(tmp_path / "m.tar", columns={"images": "jpg"}, keep=["b.jpg", "txt"]))
    assert [
        (r["id"], [m["data"] for m in r["images"]], r["keep"]["b.jpg"], r["keep"]["txt"]) for r in rows
    ] == [
        ("1", [b"a"], b"b", None),
        ("d.x/1", [b"c"], None, None),
        ("2", [b"d"], None, None),
        ("sub/2", [], None, "e"),
        ("2", [], None, "f"),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_the_samples_are_those_that_were_packed(opened, all_rows, tmp_path, seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(tar_file, "READ_BYTES", chance.choice([1, 1000, 1 << 23]))
    monkeypatch.setattr(tar_file, "SMALL_BYTES", chance.choice([0, 2048, 1 << 30]))
    form = chance.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    expected, members = [], {}
    for number in range(chance.randint(1, 200)):
        key = f"{'long' * chance.choice([0, 0, 40])}{number:04d}"
        image, text = chance.randbytes(chance.choice([1, 511, 512, 513, 9000])), f"ä{number}"
        members |= {f"{key}.jpg": image, f"{key}.txt": text.encode()}
        expected.append((number, key, [image], text))
    (tmp_path / "m.tar").write_bytes(python_tar(members, form))
    rows = all_rows(opened(tmp_path / "m.tar", keep=["txt"]), seed)
    found = [(r["row"], r["id"], [m["data"] for m in r["images"]], r["keep"]["txt"]) for r in rows]
    assert found == expected


def test_names_in_two_parts_are_whole(opened, all_rows, tmp_path):
    one, two, three = (f"{part * 60}/{'x' * 60}/1" for part in "abc")
    members = {f"{one}.jpg": b"0", f"{two}.jpg": b"1", f"{two}.txt": b"2", f"{three}.jpg": b"3"}
    write_tar(tmp_path / "m.tar", members, "ustar")
    rows = all_rows(opened(tmp_path / "m.tar", keep=["txt"]))
    assert [(row["id"], row["keep"]["txt"]) for row in rows] == [(one, None), (two, "2"), (three, None)]


def test_members_that_cannot_be_read_cost_their_sample(opened, all_rows, tmp_path):
    members = {
        "1.jpg": b"a", "1.json": b'{"x": 1}',
        "2.jpg": b"b", "2.json": b'{"x": ',
        "3.jpg": b"c", "3.txt": b"\xff",
        "4.mp4": b"d", "4.webm": b"e",
        "5.jpg": b"f",
    }  # fmt: skip
    write_tar(tmp_path / "m.tar", members)
    rows = all_rows(opened(tmp_path / "m.tar", keep=["json.x", "txt"]))
    assert [(row["id"], row["error"]) for row in rows] == [
        ("1", None),
        ("2", "the member 'json' is no JSON: Expecting value at character 7"),
        ("3", "the member 'txt' is no UTF-8: invalid start byte at byte 1"),
        ("4", "the sample has several videos; name one in manifest.columns.video"),
        ("5", None),
    ]
    assert [row["error"] for row in all_rows(opened(tmp_path / "m.tar"))][1] is None


def test_types_of_json_fields_hold_for_all_tars(opened, all_rows, tmp_path):
    for name, value in (("1", None), ("2", 3), ("3", "text")):
        data = json.dumps({"n": value, "m": value}) if name != "3" else json.dumps({"n": value})
        write_tar(tmp_path / f"{name}.tar", {"x.jpg": b"a", "x.json": data.encode()})
    manifest = opened(tmp_path, keep=["json.n", "json.m"])
    assert [str(field.type) for field in manifest.keep] == ["string", "int64"]
    assert [list(row["keep"].values()) for row in all_rows(manifest)] == [
        [None, None],
        ["3", 3],
        ["text", None],
    ]


def test_what_is_no_whole_tar_is_refused_with_all_such_files(problems, tmp_path):
    whole = python_tar({f"{n}.jpg": bytes(2000) for n in range(3)})
    (tmp_path / "1.tar").write_bytes(b"not this" * 100)
    (tmp_path / "2.tar").write_bytes(whole[:4000])
    (tmp_path / "3.tar").write_bytes(whole + whole)
    (tmp_path / "4.tar").write_bytes(whole[:2560] + b"x" * 512 + whole[3072:])
    (tmp_path / "5.tar").write_bytes(whole)
    shown = [problem.partition("cannot be read as tar: ")[2] for problem in problems(tmp_path)]
    assert shown == [
        "there is no tar header at byte 0 (invalid header)",
        "it is cut off: '1.jpg' at byte 2560 has 2,000 bytes, and the tar ends before",
        "there is more behind its end at byte 7680: were tars joined by cat? "
        "Unpack and pack it again, or name the tars one by one",
        "there is no tar header at byte 2560 (invalid header)",
    ]


@pytest.mark.parametrize("data", [b"", bytes(10240), python_tar({"__x__/a.jpg": b"1", "README": b"2"})])
def test_a_tar_without_samples_has_no_rows(problems, tmp_path, data):
    (tmp_path / "m.tar").write_bytes(data)
    (only,) = problems(tmp_path / "m.tar")
    assert "has no rows" in only


def test_a_tar_without_its_end_mark_is_whole(opened, all_rows, tmp_path):
    data = python_tar({"1.jpg": b"abc", "2.jpg": b"def"})
    for end in (2048, 1536 + 3):
        (tmp_path / "m.tar").write_bytes(data[:end])
        assert [m["data"] for r in all_rows(opened(tmp_path / "m.tar")) for m in r["images"]] == [
            b"abc",
            b"def",
        ]


def test_ranges_with_gaps_are_their_own_rows(opened, storage, tmp_path):
    (tmp_path / "m.tar").write_bytes(python_tar({f"{n}.jpg": b"%d" % n for n in range(9)}))
    manifest = opened(tmp_path / "m.tar")
    (shard,) = shards(manifest, 9)
    tables = read(storage, manifest.for_workers(), shard, [(0, 1), (3, 5), (5, 6), (8, 9)])
    assert [[row["images"][0]["data"] for row in t.to_pylist()] for t in tables] == [
        [b"0"], [b"3", b"4"], [b"5"], [b"8"],
    ]  # fmt: skip


def test_texts_of_members(opened, all_rows, tmp_path, monkeypatch):
    texts = ["txt", "text", "caption", "transcript", "cls", "cls2", "class", "count", "index", "id"]
    members = {"1.jpg": b"a"} | {f"1.{name}": name.encode() for name in texts} | {"1.json.n": b"no JSON"}
    members |= {
        "2.jpg": b"b",
        "2.txt": b"\xff",
        "2.json": b'{"n": "\\ud800"}',
        "3.jpg": b"c",
        "3.cls": b"x" * 20,
    }
    (tmp_path / "m.tar").write_bytes(python_tar(members))
    keep = [name for name in texts if name != "id"]
    named = {"id": "id", "question": "txt"}
    manifest = opened(tmp_path / "m.tar", keep=[*keep, "json.n"], columns=named)
    monkeypatch.setattr("pipeline.manifest.tar_rows.MAX_RECORD_BYTES", 19)
    one, two, three = all_rows(manifest)
    assert one["keep"] == {**{name: name for name in keep}, "json.n": b"no JSON"}
    assert (one["id"], one["question"], one["error"]) == ("id", "txt", None)
    utf8 = "the member 'txt' is no UTF-8: invalid start byte at byte 1"
    surrogate = "the member 'json' has half a surrogate pair (\\ud…), which is no text"
    assert two["error"] == f"{utf8}; {surrogate}"  # once, though two roles have it
    assert three["error"] == "the member 'cls' has more than 0 MiB of text"


def test_only_members_that_are_used_are_read():
    window = Window(io.BytesIO(b"data"), 0, 4, lambda offset, skipped: 0)
    entry = Entry("1.x", 0, 0, 4)
    assert reader_of(window, ["jpg", "txt"])("jpg", entry) == b"data"
    for extension in ("png", "json", "mp4"):
        assert reader_of(window, ["jpg", "txt"])(extension, entry) is None
    assert reader_of(window, ["__images__"])("png", entry) == b"data"
    assert reader_of(window, ["__images__"])("mp4", entry) is None
    assert reader_of(window, ["json.n"])("json", entry) == b"data"


def test_a_walk_reads_the_first_part_of_headers():
    data = python_tar({f"{n:03d}.jpg": bytes(5000) for n in range(100)})
    source = io.BytesIO(data)
    sizes = []
    plain = source.read
    source.read = lambda size: sizes.append(size) or plain(size)
    assert len(list(entries(Window(source, 0, len(data), HeaderReads()), 0))) == 100
    assert sum(sizes[:100]) == 512 + 99 * 160


def test_json_without_end_is_not_looked_into_for_types(opened, tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(tar_file, "MAX_RECORD_BYTES", 10)
    monkeypatch.setattr(tar_file, "json_object", lambda data: looked.append(data) or json.loads(data))
    members = {"1.jpg": b"a", "1.json": b'{"n":   1}', "2.jpg": b"b", "2.json": b'{"n":    2}'}
    (tmp_path / "m.tar").write_bytes(python_tar(members))
    opened(tmp_path / "m.tar", keep=["json.n"])
    assert looked == [b'{"n":   1}']
