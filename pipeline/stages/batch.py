"""What travels between stages: one row per batch, its items nested, so that no stage can tear a batch apart.

Ray Data splits and joins blocks by size; a batch that is a single row keeps its shard and its row range
whatever Ray does, and nested Arrow values reach the next process without being copied or pickled.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.errors import StorageError
from pipeline.models.packing import LoadedMedia
from pipeline.stages.ready import READY_TYPE

_MEDIA = pa.struct(
    [
        ("kind", pa.string()),
        ("uuid", pa.string()),
        ("shape", pa.list_(pa.int32())),
        ("pixels", pa.large_binary()),
        ("metadata", pa.string()),
    ]
)


@dataclass(frozen=True)
class Batch:
    """Rows `[start, stop)` of a shard. `items` is a table of one row each; `stats` plain numbers."""

    shard: str
    start: int
    stop: int
    items: pa.Table
    stats: dict[str, Any]

    def to_row(self) -> pa.Table:
        """The batch as a table of one row."""
        combined = whole(self.items.to_struct_array())
        nested = pa.LargeListArray.from_arrays(pa.array([0, len(combined)], pa.int64()), combined)
        return pa.table(
            {
                "shard": [self.shard],
                "start": pa.array([self.start], pa.int64()),
                "stop": pa.array([self.stop], pa.int64()),
                "items": nested,
                "stats": [json.dumps(self.stats)],
            }
        )

    @classmethod
    def from_row(cls, row: pa.Table) -> Batch:
        """The batch that `to_row` made."""
        flat = whole(row["items"]).flatten()
        return cls(
            shard=row["shard"][0].as_py(),
            start=row["start"][0].as_py(),
            stop=row["stop"][0].as_py(),
            items=pa.Table.from_struct_array(flat),
            stats=json.loads(row["stats"][0].as_py()),
        )


def outage_text(error: StorageError) -> str:
    """The one line of an outage, also where it came from an actor and Ray has put its traceback around it."""
    return str(getattr(error, "cause", error))


def prepared_schema(keep: pa.DataType) -> pa.Schema:
    """Items between prepare and generate. `item_uuids` and `ready` have a value for each task; where `ready` is
    null the engine is to be asked. An item with an `error_code` or with all its answers has no media.

    `page_text`: what its documents say where a prompt asks for it, null if they were not decoded; `recovered`:
    a file of it is damaged.
    """
    return pa.schema(
        [
            ("row", pa.int64()),
            ("id", pa.string()),
            ("question", pa.string()),
            ("keep", keep),
            ("error_code", pa.string()),
            ("error", pa.string()),
            ("media_uuids", pa.list_(pa.string())),
            ("media_versions", pa.list_(pa.string())),
            ("item_uuids", pa.list_(pa.string())),
            ("ready", pa.list_(READY_TYPE)),
            ("page_text", pa.string()),
            ("recovered", pa.bool_()),
            ("media", pa.list_(_MEDIA)),
            ("seconds", pa.float32()),
        ]
    )


def pack_media(media: LoadedMedia) -> dict[str, Any]:
    """Media as a value of the `media` column."""
    return {
        "kind": media.kind,
        "uuid": media.uuid,
        "shape": list(media.pixels.shape),
        "pixels": np.ascontiguousarray(media.pixels).data.cast("B"),
        "metadata": json.dumps(media.metadata) if media.metadata is not None else None,
    }


def unpack_media(column: pa.ChunkedArray) -> list[list[LoadedMedia]]:
    """Each item's media, of the `media` column; the pixels stay where Ray has put them.

    Not from Arrow's scalars: a scalar of bytes is a copy of them.
    """
    lists = whole(column)
    values = lists.values
    pixels = values.field("pixels")
    _, starts, data = pixels.buffers()
    places = np.frombuffer(starts, np.int64)[pixels.offset : pixels.offset + len(pixels) + 1].tolist()
    flat = np.frombuffer(data or b"", np.uint8)
    words = (values.field(name).to_pylist() for name in ("kind", "uuid", "shape", "metadata"))
    media = [
        LoadedMedia(kind, uuid, flat[start:end].reshape(shape), json.loads(metadata) if metadata else None)
        for (start, end), kind, uuid, shape, metadata in zip(itertools.pairwise(places), *words, strict=True)
    ]
    return [media[start:end] for start, end in itertools.pairwise(lists.offsets.to_pylist())]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array: itself if it is one, where Arrow's `combine_chunks` would copy it."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
