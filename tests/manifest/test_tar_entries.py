"""Tars that mean harm: links, names that lead out, absurd sizes and headers."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc

import pytest

from tests.manifest.tars import END, entry, python_tar, raw_header

GOOD = entry("1.jpg", b"good")


def test_what_is_no_plain_file_or_leads_out_is_an_error_of_its_sample(opened, all_rows, tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    hostile = [
        entry("2.jpg", kind=b"2", link="/etc/passwd"),
        entry("3.jpg", kind=b"2", link="../secret.jpg"),
        entry("4.jpg", kind=b"1", link="1.jpg", size=4),
        entry("5.jpg", kind=b"3"),
        entry("6.jpg", kind=b"6"),
        entry("../secret.jpg", b"x"),
        entry("/etc/passwd.jpg", b"x"),
        entry("a/../../8.jpg", b"x"),
        entry("9.jpg", b"x" * 600, kind=b"S"),
        entry("10.jpg", b"x", kind=b"Z"),
        entry("11\udcff.jpg", b"x"),
        entry("12\n.jpg", b"x"),
        entry("13.jpg", b"x") + entry("13.jpg", b"y"),
    ]
    (tmp_path / "m.tar").write_bytes(GOOD + b"".join(hostile) + entry("z.jpg", b"last") + END)
    rows = all_rows(opened(tmp_path / "m.tar"))
    good = [(row["id"], row["error"], [m["data"] for m in row["images"]]) for row in (rows[0], rows[-1])]
    assert good == [("1", None, [b"good"]), ("z", None, [b"last"])]
    reasons = ["a symbolic link", "a symbolic link", "a hard link", "a device", "a pipe"]
    reasons += ["leads out"] * 3 + ["a sparse file", "the unknown type", "no plain UTF-8", "no plain UTF-8"]
    reasons += ["is there twice"]
    assert len(rows) == 2 + len(reasons)
    for row, reason in zip(rows[1:-1], reasons, strict=True):
        assert reason in row["error"], row
        assert not any(m["data"] == b"secret" for m in row["images"])
    assert {path.name for path in tmp_path.iterdir()} == {"m.tar", "secret.jpg"}


def pax(records: bytes, kind: bytes = b"x", size: int | None = None) -> bytes:
    return entry("pax", records, kind=kind, size=size)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (raw_header(b"2.jpg", b"\xff" * 12), "has the size -1"),
        (raw_header(b"2.jpg", b"\x80" + bytes(3) + struct.pack(">q", 2**62)), "the tar ends before"),
        (raw_header(b"2.jpg", b"77777777777"), "8,589,934,591 bytes, and the tar ends before"),
        (raw_header(b"2.jpg", b"not octal"), "no tar header at byte 1024 (invalid header)"),
        (pax(b"", size=8 << 30) + entry("2.jpg"), "8,589,934,592 bytes of extensions"),
        (entry("l", size=1 << 21, kind=b"L") + entry("2.jpg"), "2,097,152 bytes of extensions"),
        (pax(b"11 size=-5\n") + entry("2.jpg"), "has the size '-5'"),
        (pax(b"14 size=1e999\n") + entry("2.jpg"), "has the size '1e999'"),
        (pax(b"26 size=99999999999999999\n") + entry("2.jpg"), "the tar ends before"),
        (pax(b"9999 path=x\n") + entry("2.jpg"), "the pax header at byte 1536 is damaged"),
        (pax(b"0 path=x\n") + entry("2.jpg"), "the pax header at byte 1536 is damaged"),
        (pax(b"nonsense") + entry("2.jpg"), "the pax header at byte 1536 is damaged"),
        (pax(b"6 a=b\n") * 40 + entry("2.jpg"), "more than 16 headers"),
        (entry("2.jpg", b"x" * 5, kind=b"S")[:482] + b"\1" * 30 + b"\1" * 3000, "no tar header"),
        (
            python_tar({"n" * 5000 + ".jpg": b"x"})[:-1024],
            "has a name of 5,004 characters",
        ),
        (pax(b"", b"g", size=8 << 30), "8,589,934,592 bytes of extensions"),
    ],
)
def test_absurd_headers_are_refused_in_little_memory(problems, tmp_path, data, reason):
    (tmp_path / "m.tar").write_bytes(GOOD + data + END)
    tracemalloc.start()
    (only,) = problems(tmp_path / "m.tar")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason in only
    assert peak < 10 << 20


def test_a_sparse_file_of_the_real_tar_is_an_error_of_its_sample(opened, all_rows, tmp_path):
    with (tmp_path / "2.jpg").open("wb") as file:
        for piece in range(40):
            file.seek(piece << 20)
            file.write(b"piece")
    (tmp_path / "3.jpg").write_bytes(b"after")
    for form in ("gnu", "pax"):
        command = ["tar", "-S", f"--format={form}", "-cf", "m.tar", "2.jpg", "3.jpg"]
        subprocess.run(command, cwd=tmp_path, check=True)
        rows = all_rows(opened(tmp_path / "m.tar"))
        assert [row["error"] is None for row in rows] == [False, True]
        assert "is a sparse file" in rows[0]["error"]
        assert rows[1]["images"][0]["data"] == b"after"


def test_a_sample_of_too_many_or_too_large_members_is_an_error(opened, all_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.manifest.tar_samples.MAX_SAMPLE_BYTES", 1000)
    members = {f"1.{n}.jpg": b"x" for n in range(300)} | {
        "2.jpg": bytes(600),
        "2.png": bytes(600),
        "3.jpg": b"y",
    }
    (tmp_path / "m.tar").write_bytes(python_tar(members))
    rows = all_rows(opened(tmp_path / "m.tar"))
    assert [row["error"] for row in rows] == [
        "the sample has more than 256 members",
        "the member '2.png' makes a sample of more than 0 MiB",
        None,
    ]


def test_a_tar_of_a_thousand_kinds_of_member_is_refused(problems, tmp_path):
    (tmp_path / "m.tar").write_bytes(python_tar({f"{n}.{n}": b"" for n in range(1500)}))
    (only,) = problems(tmp_path / "m.tar")
    assert "more than 1000 extensions" in only


def test_the_last_entry_may_be_empty_and_without_an_end_mark(opened, all_rows, tmp_path):
    (tmp_path / "m.tar").write_bytes(GOOD + entry("2.jpg"))
    assert [row["images"][0]["data"] for row in all_rows(opened(tmp_path / "m.tar"))] == [b"good", b""]


def record(key: bytes, value: bytes) -> bytes:
    """A pax record: its own length, a blank, key=value, a newline."""
    rest = len(b" %b=%b\n" % (key, value))
    length = next(n for n in range(rest, rest + 9) if n == rest + len(str(n)))
    return b"%d %b=%b\n" % (length, key, value)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (pax(record(b"path", b"x.jpg")), "x.jpg"),
        (pax(record(b"path", b"x.jpg"), b"X"), "x.jpg"),
        (pax(record(b"path", b"x.jpg"), b"g"), "2.jpg"),  # of all entries it can be no name
        (pax(record(b"path", b"x.jpg")) + entry("l", b"y.jpg\0", kind=b"L"), "x.jpg"),
        (entry("l", b"y.jpg\0", kind=b"L"), "y.jpg"),
        (entry("l", b"y\0", kind=b"K"), "2.jpg"),  # of a link's target
        (pax(record(b"path", b"x.jpg") + bytes(20)), "x.jpg"),
        (pax(record(b"path", b"n" * 4092 + b".jpg")), "n" * 4092 + ".jpg"),
        (pax(record(b"comment", b"c" * ((1 << 20) - 17))), "2.jpg"),  # 1 MiB to the byte
        (entry("d/", kind=b"5", size=512), "2.jpg"),  # whatever a folder's size is, nothing follows
        (pax(record(b"path", b"a..b/x.jpg")), "a..b/x.jpg"),
        (pax(record(b"path", b"x.jpg")) + pax(record(b"mtime", b"1.5")), "x.jpg"),
    ],
)
def test_headers_before_an_entry_name_it(opened, all_rows, tmp_path, headers, name):
    assert len(record(b"comment", b"c" * ((1 << 20) - 17))) == 1 << 20
    (tmp_path / "m.tar").write_bytes(GOOD + headers + entry("2.jpg", b"two") + entry("3.jpg", b"3") + END)
    rows = all_rows(opened(tmp_path / "m.tar"))
    media = [(m["uri"], m["data"], row["error"]) for row in rows for m in row["images"]]
    assert media == [("1.jpg", b"good", None), (name, b"two", None), ("3.jpg", b"3", None)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pax(b"7 path=") + entry("2.jpg"), "the pax header at byte 1536 is damaged"),
        (pax(record(b"size", "٣".encode())) + entry("2.jpg", b"two"), "has the size '٣'"),
        (pax(record(b"size", b"9" * 30)) + entry("2.jpg"), f"has the size '{'9' * 30}'"),
        (pax(record(b"path", b"n" * 4093 + b".jpg")) + entry("2.jpg"), "has a name of 4,097 characters"),
    ],
)
def test_headers_that_say_nonsense_are_refused(problems, tmp_path, data, reason):
    (tmp_path / "m.tar").write_bytes(GOOD + data + END)
    (only,) = problems(tmp_path / "m.tar")
    assert reason in only


@pytest.mark.parametrize("claimed", [b"000001\0 ", b"777777\0 ", b"nonsense"])
def test_a_checksum_that_cannot_be_is_found_by_a_brief_look(problems, tmp_path, claimed):
    second = raw_header(b"2.jpg", b"00000000000")
    damaged = second[:148] + claimed + second[156:]
    # Behind so many bytes only the first 160 of a header are read at once.
    (tmp_path / "m.tar").write_bytes(entry("1.jpg", bytes(5000)) + damaged + END)
    (only,) = problems(tmp_path / "m.tar")
    assert "there is no tar header at byte 5632 (" in only


def test_a_sample_tells_three_problems_at_most_and_may_be_as_large_as_allowed(
    opened, all_rows, tmp_path, monkeypatch
):
    monkeypatch.setattr("pipeline.manifest.tar_samples.MAX_SAMPLE_BYTES", 1000)
    links = b"".join(entry(f"1.{n}.jpg", kind=b"2", link="x") for n in range(5))
    whole = entry("2.jpg", bytes(400)) + entry("2.png", bytes(600))
    (tmp_path / "m.tar").write_bytes(links + whole + END)
    one, two = all_rows(opened(tmp_path / "m.tar"))
    link = "is a symbolic link; only plain files are read"
    assert one["error"] == "; ".join(f"the member '1.{n}.jpg' {link}" for n in range(3))
    assert (two["error"], [len(m["data"]) for m in two["images"]]) == (None, [400, 600])
