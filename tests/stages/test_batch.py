"""A batch goes from stage to stage as one row, and nobody copies its pixels on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from pipeline.models.packing import LoadedMedia
from pipeline.stages.batch import Batch, pack_media, prepared_schema, unpack_media

MEDIA_TYPE = prepared_schema(pa.struct([])).field("media").type


def picture(number: int) -> LoadedMedia:
    return LoadedMedia("image", f"uuid {number}", np.full((2, 3, 3), number, np.uint8))


VIDEO = LoadedMedia("video", "clip", np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3), {"fps": 2.0})


def batch(*items: Sequence[LoadedMedia]) -> Batch:
    media = pa.array([[pack_media(one) for one in item] for item in items], MEDIA_TYPE)
    return Batch("s", 0, len(items), pa.table({"id": list(map(str, range(len(items)))), "media": media}), {})


def carried(row: pa.Table) -> tuple[pa.Table, pa.Buffer]:
    """The row as the next process has it, and the memory that all of it lies in."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    memory = sink.getvalue()
    return pa.ipc.open_stream(memory).read_all(), memory


def told(items: list[list[LoadedMedia]]) -> list[list[tuple[str, str, list[int], object]]]:
    return [[(one.kind, one.uuid, one.pixels.tolist(), one.metadata) for one in item] for item in items]


def test_media_arrive_as_they_were_each_with_its_item() -> None:
    sent = [[picture(1)], [], [picture(2), VIDEO], [picture(3)]]
    row, _ = carried(batch(*sent).to_row())
    got = Batch.from_row(row)
    assert (got.shard, got.start, got.stop, got.items["id"].to_pylist()) == ("s", 0, 4, ["0", "1", "2", "3"])
    assert told(unpack_media(got.items["media"])) == told(sent)
    assert told(unpack_media(got.items["media"].slice(2, 1))) == told(sent[2:3])


@pytest.mark.parametrize("items", [[], [[]], [[], []]])
def test_items_without_media(items: list[list[LoadedMedia]]) -> None:
    row, _ = carried(batch(*items).to_row())
    assert unpack_media(Batch.from_row(row).items["media"]) == items


def test_pixels_stay_where_they_came() -> None:
    row, memory = carried(batch([picture(1)], [picture(2)]).to_row())
    found = Batch.from_row(row)
    for (one,) in unpack_media(found.items["media"]):
        place = one.pixels.__array_interface__["data"][0]
        assert memory.address <= place < memory.address + memory.size
    again = found.to_row()["items"].chunk(0).values.field("media").values.field("pixels").buffers()[2]
    assert memory.address <= again.address < memory.address + memory.size


def test_a_row_in_several_pieces_is_put_together() -> None:
    one, other = batch([picture(1)]).items["media"].chunk(0), batch([VIDEO]).items["media"].chunk(0)
    assert told(unpack_media(pa.chunked_array([one, other]))) == told([[picture(1)], [VIDEO]])


def test_media_that_begin_in_the_middle_of_an_array() -> None:
    values = batch([picture(1), picture(2), VIDEO]).items["media"].chunk(0).values
    column = pa.chunked_array([pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), values.slice(1))])
    assert told(unpack_media(column)) == told([[picture(2)], [VIDEO]])
