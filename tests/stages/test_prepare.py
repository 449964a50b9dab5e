"""The prepare stage: pixels with their identities, or a code, for each row of its batch."""

from __future__ import annotations

import pyarrow as pa

from pipeline.identity import item_uuid, media_uuid
from pipeline.stages.batch import Batch, unpack_media
from pipeline.stages.prepare import Prepare
from tests.stages.conftest import png


def prepared(prepare: Prepare, rows: list[pa.Table]) -> list[dict[str, object]]:
    return [item for row in rows for item in Batch.from_row(prepare(row)).items.to_pylist()]


def test_batches_keep_their_place_and_their_passed_through_columns(
    prepare: Prepare, manifest_rows: list[pa.Table]
) -> None:
    batches = [Batch.from_row(prepare(row)) for row in manifest_rows]
    assert [(batch.start, batch.stop) for batch in batches] == [(0, 4), (4, 7)]
    assert {batch.stats["manifest"] for batch in batches} == {"m.jsonl"}
    items = [item for batch in batches for item in batch.items.to_pylist()]
    assert [item["row"] for item in items] == list(range(7))
    assert [item["keep"]["n"] for item in items] == [1, 2, 3, 4, 5, 6, 7]


def test_each_item_has_its_media_or_its_own_code(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    items = {item["id"]: item for item in prepared(prepare, manifest_rows)}
    assert {name: item["error_code"] for name, item in items.items()} == {
        "one": None,
        "own-question": None,
        "two": None,
        "missing": "fetch_not_found",
        "none": "missing_media",
        "many": "too_many_media",
        "outside": "path_not_allowed",
    }
    assert [len(items[name]["media"]) for name in items] == [1, 1, 2, 0, 0, 0, 0]
    assert items["two"]["media_uuids"] == [media_uuid(png("red")), media_uuid(png("blue"))]


def test_item_uuids_are_one_for_each_task_of_the_question_as_asked(
    prepare: Prepare, manifest_rows: list[pa.Table]
) -> None:
    items = {item["id"]: item for item in prepared(prepare, manifest_rows)}
    red = [media_uuid(png("red"))]
    assert items["one"]["item_uuids"] == [
        item_uuid(red, "Describe.", {"model": "m"}),
        item_uuid(red, "Read.", {"model": "m"}),
    ]
    assert items["own-question"]["item_uuids"] == [item_uuid(red, "What colour?", {"model": "m"})] * 2
    assert items["missing"]["item_uuids"] is None


def test_pixels_arrive_as_they_were(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    batch = Batch.from_row(prepare(manifest_rows[0]))
    media = unpack_media(batch.items["media"])
    red, blue = media[2]
    assert (red.kind, red.pixels.shape) == ("image", (20, 40, 3))
    assert red.pixels[7, 9].tolist() == [255, 0, 0]
    assert blue.pixels[7, 9].tolist() == [0, 0, 255]
    assert red.uuid != blue.uuid
    assert red.uuid == media[0][0].uuid


def test_a_file_of_more_than_max_bytes_is_refused(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    small = Prepare(**{**vars(prepare), "max_bytes": len(png("red")) - 1})
    items = prepared(small, manifest_rows)
    assert items[0]["error_code"] == "too_large"
