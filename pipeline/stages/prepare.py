"""Fetch, identify and decode the media of a batch; what cannot be read becomes a coded failure."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.errors import Code, ItemError
from pipeline.identity import item_uuid
from pipeline.media.load import MediaLoader
from pipeline.models.packing import LoadedMedia
from pipeline.models.spec import Kind
from pipeline.stages.batch import Batch, pack_media, prepared_schema
from pipeline.storage import Storage

_Reference = tuple[Kind, dict[str, Any]]


@dataclass(frozen=True)
class Prepare:
    """The stage, with all it needs; Ray ships it to the workers.

    `prompts` are the tasks' prompts in their order; `answering` is the recipe without them.
    """

    storage: Storage
    loader: MediaLoader
    prompts: tuple[str, ...]
    answering: dict[str, Any]
    max_bytes: int
    max_per_item: int

    def __call__(self, row: pa.Table) -> pa.Table:
        """One batch: items with references in, items with pixels out."""
        started = time.time()
        batch = Batch.from_row(row)
        items = batch.items.drop_columns(["keep"]).to_pylist()
        with ThreadPoolExecutor(self.storage.config.fetch_threads, "fetch") as pool:
            fetching = [self._start_fetching(pool, item) for item in items]
            prepared = [self._item(item, parts) for item, parts in zip(items, fetching, strict=True)]
        schema = prepared_schema(batch.items.schema.field("keep").type)
        columns = {
            field.name: batch.items["keep"].combine_chunks()
            if field.name == "keep"
            else pa.array([item[field.name] for item in prepared], field.type)
            for field in schema
        }
        stats = {**batch.stats, "prepare_start": started, "prepare_end": time.time()}
        table = pa.table(columns, schema=schema)
        return Batch(batch.shard, batch.start, batch.stop, table, stats).to_row()

    def _start_fetching(
        self, pool: ThreadPoolExecutor, item: dict[str, Any]
    ) -> list[tuple[Kind, Future[bytes]]]:
        references: list[_Reference] = [("image", one) for one in item["images"] or ()]
        references += [("video", one) for one in item["videos"] or ()]
        if item["error"] is not None or len(references) > self.max_per_item:
            return []
        return [(kind, pool.submit(self._bytes_of, one)) for kind, one in references]

    def _bytes_of(self, reference: dict[str, Any]) -> bytes:
        data: bytes | None = reference["data"]
        if data is None:
            return self.storage.fetch(reference["uri"], self.max_bytes).data
        if not data:
            raise ItemError(Code.EMPTY_FILE, "the row's media has no bytes")
        if len(data) > self.max_bytes:
            raise ItemError(Code.TOO_LARGE, f"the row's media has more than {self.max_bytes:,} bytes")
        return data

    def _item(self, item: dict[str, Any], parts: list[tuple[Kind, Future[bytes]]]) -> dict[str, Any]:
        started = time.perf_counter()
        prepared: dict[str, Any] = {
            **{name: item[name] for name in ("row", "id", "question")},
            **dict.fromkeys(("error_code", "error", "media_uuids", "item_uuids")),
            "media": [],
        }
        try:
            uuids, media = self._load(item, parts)
        except ItemError as error:
            prepared |= {"error_code": error.code.value, "error": error.reason}
        else:
            asked = [item["question"] or prompt for prompt in self.prompts]
            prepared |= {
                "media_uuids": uuids,
                "item_uuids": [item_uuid(uuids, question, self.answering) for question in asked],
                "media": [pack_media(one) for one in media],
            }
        return {**prepared, "seconds": time.perf_counter() - started}

    def _load(
        self, item: dict[str, Any], parts: list[tuple[Kind, Future[bytes]]]
    ) -> tuple[list[str], list[LoadedMedia]]:
        if item["error"] is not None:
            raise ItemError(Code.MANIFEST_ROW, item["error"])
        count = len(item["images"] or ()) + len(item["videos"] or ())
        if count > self.max_per_item:
            raise ItemError(
                Code.TOO_MANY_MEDIA,
                f"the item has {count} media, at most {self.max_per_item} (media.max_per_item)",
            )
        if not count:
            raise ItemError(Code.MISSING_MEDIA, "the item has no image and no video")
        loaded = [self.loader.load(kind, future.result()) for kind, future in parts]
        return [uuid for uuid, _ in loaded], [media for _, media in loaded]
