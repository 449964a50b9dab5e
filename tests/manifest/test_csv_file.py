"""CSV and TSV, row by row."""

from __future__ import annotations

import csv
import io
import random

import pytest


def test_rows(opened, all_rows, tmp_path):
    (tmp_path / "m.csv").write_bytes(
        "\ufeffid,image,question,note\r\n"
        '1,a b.jpg,"is it ""so"",\r\nor not?",\r\n'
        "\r\n"
        ',s3://b/é%20.jpg, ,"x, y"\r\n'
        "3,c.jpg\r\n"
        "4,,,\r\n"
        '5,"d.jpg\nf.jpg,g\n",q'.encode()
    )
    manifest = opened(tmp_path / "m.csv", keep=["note", "id"])
    assert (manifest.rows, manifest.has_images, manifest.has_videos) == (5, True, False)
    assert [str(field.type) for field in manifest.keep] == ["string", "string"]
    none = {"images": [], "videos": [], "question": None, "keep": {"note": None, "id": None}}
    assert all_rows(manifest, shard_rows=2) == [
        {
            "row": 0,
            "id": "1",
            "images": [{"uri": f"{tmp_path}/a b.jpg", "data": None}],
            "videos": [],
            "question": 'is it "so",\r\nor not?',
            "keep": {"note": "", "id": "1"},
            "error": None,
        },
        {
            "row": 1,
            "id": "m.csv#1",
            "images": [{"uri": "s3://b/é%20.jpg", "data": None}],
            "videos": [],
            "question": None,
            "keep": {"note": "x, y", "id": ""},
            "error": None,
        },
        {"row": 2, "id": "m.csv#2", **none, "error": "the row has 2 fields, the header has 4"},
        {
            "row": 3,
            "id": "4",
            **none,
            "keep": {"note": "", "id": "4"},
            "error": None,
        },
        {
            "row": 4,
            "id": "m.csv#4",
            **none,
            "error": "the row has 3 fields, the header has 4 and goes on over 3 lines: is a quote not closed?",
        },
    ]


def test_tsv_and_lists_of_images(opened, all_rows, tmp_path):
    (tmp_path / "m.tsv").write_text('images\tid\n/a,b.jpg\tx\n"[""/c.jpg"", ""/d.jpg""]"\ty\n')
    rows = all_rows(opened(tmp_path / "m.tsv", keep=["images"]))
    assert [[m["uri"] for m in row["images"]] for row in rows] == [["/a,b.jpg"], ["/c.jpg", "/d.jpg"]]
    assert rows[1]["keep"] == {"images": '["/c.jpg", "/d.jpg"]'}


def test_bytes_that_are_no_text_cost_their_row(opened, all_rows, tmp_path):
    (tmp_path / "m.csv").write_bytes(b"image\na\nb\xff\nc\rd\ne\n")
    errors = [row["error"] for row in all_rows(opened(tmp_path / "m.csv"))]
    assert errors[:2] == [None, "the row is no UTF-8: invalid start byte at byte 2"]
    assert errors[2].startswith("the row is no CSV: new-line character")
    assert errors[3:] == [None]


def test_a_long_field_is_read(opened, all_rows, tmp_path):
    (tmp_path / "m.csv").write_text(f"image,question\na,{'x' * 200_000}\n")
    assert all_rows(opened(tmp_path / "m.csv"))[0]["question"] == "x" * 200_000


def test_files_with_their_columns_in_another_order(opened, all_rows, tmp_path):
    (tmp_path / "1.csv").write_text("image,id\n/1.jpg,one\n")
    (tmp_path / "2.csv").write_text("id,image,more\ntwo,/2.jpg,x\n")
    (tmp_path / "3.csv").write_text("")
    (tmp_path / "4.csv").write_text("other\n")
    rows = all_rows(opened(tmp_path))
    assert [(row["row"], row["id"], row["images"][0]["uri"]) for row in rows] == [
        (0, "one", "/1.jpg"),
        (0, "two", "/2.jpg"),
    ]


def test_a_quote_that_is_never_closed_is_refused(problems, tmp_path):
    (tmp_path / "m.csv").write_text('image,q\na,b\nc,"d\ne,f\n')
    (only,) = problems(tmp_path / "m.csv")
    assert f"{tmp_path}/m.csv" in only
    assert "begins at byte 12 has a quote that is never closed" in only


@pytest.mark.parametrize("seed", range(12))
def test_the_pieces_are_the_file(opened, all_rows, tmp_path, seed):
    chance = random.Random(seed)
    delimiter, name = chance.choice([(",", "m.csv"), ("\t", "m.tsv")])
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=delimiter,
        # The writer of Python 3.11 leaves a lone \r without quotes unless lines end with one.
        **chance.choice(
            [
                {"lineterminator": "\r\n", "quoting": csv.QUOTE_MINIMAL},
                {"lineterminator": "\r\n", "quoting": csv.QUOTE_ALL},
                {"lineterminator": "\n", "quoting": csv.QUOTE_ALL},
            ]
        ),
    )
    writer.writerow(["image", "note"])
    for _ in range(chance.randint(1, 1500)):
        note = "".join(chance.choices('a",\t\n\r\u2028é', k=chance.randint(0, 12)))
        writer.writerow([f"/{note}", note])
    (tmp_path / name).write_bytes(text.getvalue().encode())
    with (tmp_path / name).open(newline="", encoding="utf-8") as file:
        expected = list(csv.DictReader(file, delimiter=delimiter))
    found = all_rows(opened(tmp_path / name, keep=["note"]), seed)
    assert [(row["row"], row["images"][0]["uri"], row["keep"]["note"]) for row in found] == [
        (number, row["image"], row["note"]) for number, row in enumerate(expected)
    ]


def test_a_row_of_too_many_fields_is_an_error(opened, all_rows, tmp_path):
    (tmp_path / "m.csv").write_text('image,q\na,b,c\n"d\ne",f,g\nh,i\n')
    assert [row["error"] for row in all_rows(opened(tmp_path / "m.csv"))] == [
        "the row has 3 fields, the header has 2",
        "the row has 3 fields, the header has 2 and goes on over 2 lines: is a quote not closed?",
        None,
    ]


def test_a_header_without_end_is_refused(problems, tmp_path):
    (tmp_path / "m.csv").write_text("image," + "x" * (16 << 20) + "\na,b\n")
    (only,) = problems(tmp_path / "m.csv")
    assert "its header row has more than 16 MiB" in only
