"""JSON lines, row by row."""

from __future__ import annotations

import json
import random

import pytest


def rows_by_hand(name, folder):
    none = {"images": [], "videos": [], "question": None, "keep": {"w": None}}
    image = {"images": [{"uri": f"{folder}/é.jpg", "data": None}], "videos": [], "error": None}
    return [
        {"row": 0, "id": "a", **image, "question": "why?", "keep": {"w": 1}},
        {"row": 1, "id": f"{name}#1", **none, "error": "the line is no JSON: Expecting value at character 11"},
        {"row": 2, "id": "7", **image, "question": None, "keep": {"w": 2}},
        {
            "row": 3,
            "id": f"{name}#3",
            **none,
            "error": "the line is a JSON list where an object belongs",
        },
        {"row": 4, "id": "b", **none, "error": None},
        {
            "row": 5,
            "id": "c",
            **image,
            "question": None,
            "keep": {"w": None},
            "error": "column 'w' is 1.5, where the first rows have int64",
        },
        {
            "row": 6,
            "id": f"{name}#6",
            **image,
            "question": None,
            "keep": {"w": 3},
            "error": "column 'id' has an id that is neither text nor a whole number: 1.5",
        },
        {
            "row": 7,
            "id": f"{name}#7",
            **none,
            "error": "the line is no UTF-8: invalid start byte at byte 13",
        },
        {"row": 8, "id": "last\u2028", **image, "question": None, "keep": {"w": 4}},
    ]


LINES = [
    b'\xef\xbb\xbf{"id": "a", "image": "\xc3\xa9.jpg", "question": "why?", "w": 1}\r',
    b'{"image": x}',
    b'{"id": 7, "image": "\\u00e9.jpg", "question": "", "w": 2, "more": {"x": 1}}',
    b"   ",
    b"[1]",
    b'{"id": "b"}',
    b'{"id": "c", "image": "\xc3\xa9.jpg", "w": 1.5}',
    b'{"id": 1.5, "image": "\xc3\xa9.jpg", "w": 3}',
    b'{"image": "a\xff.jpg"}',
    b'{"id": "last\xe2\x80\xa8", "image": "\xc3\xa9.jpg", "w": 4}',
]


@pytest.mark.parametrize("shard_rows", [1, 4, 100])
def test_malformed_rows_stay_where_they_are(opened, all_rows, tmp_path, shard_rows):
    # The type of w is that of the first rows; 1.5 comes later than that.
    filler = [b'{"image": "x.jpg", "w": 0, "pad": "%s"}' % (b"x" * 1000)] * 1100
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"\n".join([*LINES[:5], *LINES[5:6], *filler, *LINES[6:]]))
    manifest = opened(path, keep=["w"])
    assert manifest.rows == 9 + 1100
    rows = all_rows(manifest, shard_rows=shard_rows * 37)
    expected = rows_by_hand("m.jsonl", tmp_path)
    for row in expected[5:]:
        row["row"] += 1100
        row["id"] = row["id"].replace(f"#{row['row'] - 1100}", f"#{row['row']}")
    assert rows[:5] + rows[-4:] == expected


def test_images_and_video(opened, all_rows, tmp_path):
    (tmp_path / "m.ndjson").write_text(
        '{"image": {"path": "0.jpg"}, "images": ["1.jpg", {"path": "s3://b/2.jpg", "bytes": null}],'
        ' "v": "v.mp4"}\n'
        '{"images": ["1.jpg", 5]}\n'
        '{"image": {"bytes": "aGk=", "path": "x"}}\n'
    )
    manifest = opened(tmp_path / "m.ndjson", columns={"video": "v"})
    assert (manifest.has_images, manifest.has_videos) == (True, True)
    one, two, three = all_rows(manifest)
    assert [m["uri"] for m in one["images"]] == [f"{tmp_path}/0.jpg", f"{tmp_path}/1.jpg", "s3://b/2.jpg"]
    assert [m["uri"] for m in one["videos"]] == [f"{tmp_path}/v.mp4"]
    assert (two["images"], two["error"]) == (
        [],
        "column 'images' is int 5 where a URI, bytes or {bytes, path} belongs",
    )
    assert "bytes can only come in Parquet" in three["error"]


def test_kept_columns_keep_their_types(opened, all_rows, tmp_path):
    keep = [
        {"n": 1, "f": 1, "s": "2024-01-01", "l": [1, None], "o": {"x": 1, "y": {"z": []}}, "mixed": 1},
        {"n": None, "f": 0.5, "s": "é", "l": [], "o": None, "mixed": {"a": "é"}},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps({"image": "x", **row}) + "\n" for row in keep))
    manifest = opened(tmp_path / "m.jsonl", keep=["f", "n", "s", "l", "o", "mixed"])
    assert [f"{field.name}: {field.type}" for field in manifest.keep] == [
        "f: double",
        "n: int64",
        "s: string",
        "l: list<item: int64>",
        "o: struct<x: int64, y: struct<z: list<item: string>>>",
        "mixed: string",
    ]
    found = [row["keep"] for row in all_rows(manifest)]
    assert found == [{**keep[0], "mixed": "1"}, {**keep[1], "mixed": '{"a": "é"}'}]


def test_an_id_is_text_or_a_whole_number(opened, all_rows, tmp_path):
    ids = ["é", "", 0, -5, 10**30, None, True, 1.0, ["a"]]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps({"id": i, "image": "x"}) + "\n" for i in ids))
    rows = all_rows(opened(tmp_path / "m.jsonl"))
    assert [row["id"] for row in rows] == [
        "é",
        "m.jsonl#1",
        "0",
        "-5",
        "1" + "0" * 30,
        "m.jsonl#5",
        "m.jsonl#6",
        "m.jsonl#7",
        "m.jsonl#8",
    ]
    assert [row["error"] is None for row in rows] == [True] * 6 + [False] * 3


def test_half_a_surrogate_is_an_error_of_its_row_where_it_is_used(opened, all_rows, tmp_path):
    (tmp_path / "m.jsonl").write_text(
        '{"image": "x", "t": "\\ud83d\\ude00", "\\ud800": 1}\n{"image": "x", "t": "\\uD83D"}\n{"image": "x"}\n'
    )
    manifest = opened(tmp_path / "m.jsonl", keep=["t"])
    assert [(row["keep"]["t"], row["error"]) for row in all_rows(manifest)] == [
        ("😀", None),
        (None, "the line has half a surrogate pair (\\ud…), which is no text"),
        (None, None),
    ]


def test_nesting_without_end(opened, all_rows, tmp_path):
    lines = ['{"image": "x"}', '{"image": ' + "[" * 100_000, '{"k": ' + "[" * 900 + "]" * 900 + "}"]
    lines.append('{"image": "y", "k": ' + '{"a":' * 60 + "1" + "}" * 60 + "}")
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    rows = all_rows(opened(tmp_path / "m.jsonl", keep=["k"]))
    deep = "the line is nested too deeply"
    assert [row["error"] for row in rows] == [None, deep, deep, None]


@pytest.mark.parametrize("text", ['[\n{"image": "x"},\n{"image": "y"}\n]', '[{"image": "x"}, {}]'])
def test_a_json_array_is_refused(problems, tmp_path, text):
    (tmp_path / "m.jsonl").write_text(text)
    (only,) = problems(tmp_path / "m.jsonl")
    assert "it is a JSON array" in only
    assert "jq -c" in only


def test_what_is_no_json_is_refused(problems, tmp_path):
    (tmp_path / "m.jsonl").write_text("image: x\n" * 3)
    (only,) = problems(tmp_path / "m.jsonl")
    assert "none of its first lines is a JSON object (the line is no JSON: Expecting value" in only


@pytest.mark.parametrize("seed", range(12))
def test_the_pieces_are_the_file(opened, all_rows, tmp_path, seed):
    chance = random.Random(seed)
    lines = []
    for _ in range(chance.randint(1, 1500)):
        text = "".join(chance.choices('a"\\\n\r\u2028\u2029\x85é😀,', k=chance.randint(0, 12)))
        lines.append(json.dumps({"id": f"i{text}", "image": f"/{text}"}, ensure_ascii=chance.random() < 0.5))
        lines += chance.choices(["", " \t"], k=chance.choice([0, 0, 0, 1, 2]))
    (tmp_path / "m.jsonl").write_bytes(chance.choice(["\n", "\r\n"]).join(lines).encode())
    expected = [json.loads(line) for line in lines if line.strip()]
    found = all_rows(opened(tmp_path / "m.jsonl"), seed)
    assert [(row["row"], row["id"], row["images"][0]["uri"]) for row in found] == [
        (number, row["id"], row["image"]) for number, row in enumerate(expected)
    ]


def test_the_first_reason_is_told_where_no_line_is_an_object(problems, tmp_path):
    (tmp_path / "m.jsonl").write_text("5\nnot JSON\n")
    (only,) = problems(tmp_path / "m.jsonl")
    assert "(the line is a JSON int where an object belongs); JSONL has one in each line" in only


@pytest.mark.parametrize(
    ("value", "is_refused"),
    [
        ("[" * 63 + "]" * 63, False),  # 64 with the object around
        ("[" * 64 + "]" * 64, True),
        ('{"x": ' * 64 + "1" + "}" * 64, True),
        ("[" + ", ".join(["[]"] * 300) + "]", False),
    ],
)
def test_nesting_is_counted_in_depth(opened, all_rows, tmp_path, value, is_refused):
    (tmp_path / "m.jsonl").write_text(f'{{"image": "a"}}\n{{"image": "b", "n": {value}}}\n')
    one, two = all_rows(opened(tmp_path / "m.jsonl"))
    assert one["error"] is None
    assert two["error"] == ("the line is nested too deeply" if is_refused else None)


def test_a_line_that_is_a_list_of_no_objects_costs_itself(opened, all_rows, tmp_path):
    (tmp_path / "m.jsonl").write_text('[1, 2]\n{"image": "a"}\n')
    errors = [row["error"] for row in all_rows(opened(tmp_path / "m.jsonl"))]
    assert errors == ["the line is a JSON list where an object belongs", None]
