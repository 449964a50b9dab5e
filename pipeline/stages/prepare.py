"""Fetch, identify and decode the media of a batch; what needs no engine, or cannot be read, needs no pixels."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipeline.errors import Code, ItemError, StorageError
from pipeline.identity import item_uuid
from pipeline.media.isolated import AT_ONCE
from pipeline.media.load import MediaLoader
from pipeline.results.dedup import Answers, Claim, Verdict
from pipeline.stages.batch import Batch, outage_text, pack_media, prepared_schema, whole
from pipeline.stages.item import Item
from pipeline.stages.ready import reader_of, ready_answer, unwanted
from pipeline.stages.reference import Sources, cut
from pipeline.storage import Storage

CLAIMED_AT_ONCE = 8
"""Items whose claims are one call, while those behind them are still being fetched."""


@dataclass(frozen=True)
class Prepare:
    """The stage, with all it needs; Ray ships it to the workers.

    `prompts` are the tasks' prompts by name; `answering` is the recipe without them. With `versions_known`
    it pays to ask `answers` for media by object version before they are fetched.
    """

    storage: Storage
    loader: MediaLoader
    prompts: dict[str, str]
    answering: dict[str, Any]
    max_bytes: int
    max_per_item: int
    answers: Answers
    versions_known: bool = False
    max_question_chars: int = 32_768

    def __call__(self, row: pa.Table) -> pa.Table:
        """One batch: items with references in, items with pixels, an answer or a code out.

        Where answers of earlier runs can be read no longer, no items come out, and the reason is in the
        batch's stats as `outage`.
        """
        batch = Batch.from_row(row)
        try:
            return self._prepared(batch)
        except StorageError as error:
            stats = {**batch.stats, "outage": outage_text(error)}
            return self._prepared(replace(batch, items=batch.items.slice(0, 0), stats=stats))

    def _prepared(self, batch: Batch) -> pa.Table:
        started = time.time()
        rows = batch.items.drop_columns(["keep"]).to_pylist()
        wanted = {tuple(pair) for pair in batch.stats.get("again", ())}
        items = [Item.of(row, self._tasks_of(row["row"], wanted)) for row in rows]
        for item in items:
            self._check(item)
        with (
            ThreadPoolExecutor(self.storage.config.fetch_threads, "fetch") as pool,
            ThreadPoolExecutor(AT_ONCE, "decode") as decoders,
        ):
            sources = Sources(self.storage, pool, self.max_bytes)
            if self.versions_known:
                self._recognise(sources, batch.shard, items)
            for item in items:
                if item.needs_bytes:
                    item.fetching = [sources.fetch(one) for one in item.references]
            decoding = []
            for group in _groups(items, CLAIMED_AT_ONCE):
                self._identify(sources, batch.shard, group)
                decoding += [decoders.submit(self._decode, item) for item in group]
            for decoded in decoding:
                decoded.result()
        keep = whole(batch.items["keep"])
        stats = {**batch.stats, "prepare_start": started, "prepare_end": time.time()}
        return Batch(batch.shard, batch.start, batch.stop, self._table(items, keep), stats).to_row()

    def _tasks_of(self, row: int, wanted: set[tuple[Any, ...]]) -> list[str]:
        return [task for task in self.prompts if not wanted or (row, task) in wanted]

    def _check(self, item: Item) -> None:
        with item.failing():
            if item.row["error"] is not None:
                raise ItemError(Code.MANIFEST_ROW, item.row["error"])
            item.bound_question(self.max_question_chars)
            if len(item.references) > self.max_per_item:
                raise ItemError(
                    Code.TOO_MANY_MEDIA,
                    f"the item has {len(item.references)} media, at most {self.max_per_item} "
                    "(media.max_per_item)",
                )
            if not item.references:
                raise ItemError(Code.MISSING_MEDIA, "the item has no image and no video")
            item.references = cut(item.references, item.row, self.loader.segment)

    def _recognise(self, sources: Sources, shard: str, items: Sequence[Item]) -> None:
        """Claim the items whose media an earlier run has read and which have not changed since."""
        remote = [item for item in items if not item.error and all(ref.data is None for ref in item.references)]
        asking = [(ref, sources.version(ref)) for item in remote for ref in item.references]
        versions = [ref.identity(asked.result()) for ref, asked in asking]
        told = [version for version in versions if version]
        known = iter(self.answers.known_media(told) if told else [])
        found = [(version, next(known) if version else None) for version in versions]
        places = iter(found)
        for item in remote:
            item.versions, item.media_uuids = map(
                list, zip(*itertools.islice(places, len(item.references)), strict=True)
            )
        self._claim(shard, [item for item in remote if all(item.media_uuids)])

    def _identify(self, sources: Sources, shard: str, items: Sequence[Item]) -> None:
        """Wait for the bytes of these items, and claim those that are not what they were taken for."""
        changed = []
        for item in items:
            if not item.fetching:
                continue
            with item.failing():
                item.fetched = [one.result() for one in item.fetching]
                item.versions = [
                    ref.identity(one.version) for ref, one in zip(item.references, item.fetched, strict=True)
                ]
                uuids = [
                    sources.media_uuid(ref, one.data)
                    for ref, one in zip(item.references, item.fetched, strict=True)
                ]
                if uuids != item.media_uuids or not item.verdicts:
                    item.media_uuids = uuids
                    changed.append(item)
            if item.error:
                item.forget_identity()
        self._claim(shard, changed)

    def _claim(self, shard: str, items: Sequence[Item]) -> None:
        claims = []
        for item in items:
            asked = {task: item.row["question"] or prompt for task, prompt in self.prompts.items()}
            item.item_uuids = {
                task: item_uuid(item.media_uuids, question, self.answering) for task, question in asked.items()
            }
            row = item.row["row"]
            claims += [Claim(item.item_uuids[task], f"{shard}:{row}:{task}") for task in item.tasks]
        verdicts = iter(self.answers.claim(claims) if claims else [])
        for item in items:
            item.verdicts = {task: next(verdicts) for task in item.tasks}
            item.ready = {task: self._ready(verdict) for task, verdict in item.verdicts.items()}

    def _ready(self, verdict: Verdict) -> dict[str, Any] | None:
        return ready_answer(verdict, reader_of(self.storage))

    def _decode(self, item: Item) -> None:
        started = time.perf_counter()
        if item.needs_bytes:
            with item.failing():
                loaded = [
                    self.loader.load(ref.kind, one.data, ref.page, ref.password, media, segment=ref.segment)[1]
                    for ref, one, media in zip(item.references, item.fetched, item.media_uuids, strict=True)
                ]
                item.media = [pack_media(one) for one in loaded]
                item.page_text = "\n\n".join(one.text for one in loaded if one.text)
                item.recovered = any(one.recovered for one in loaded)
        item.fetched = []
        item.seconds = time.perf_counter() - started

    def _table(self, items: Sequence[Item], keep: pa.Array) -> pa.Table:
        schema = prepared_schema(keep.type)
        rows = [item.prepared(tuple(self.prompts), unwanted()) for item in items]
        columns = [
            keep if field.name == "keep" else pa.array([row[field.name] for row in rows], field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)


def _groups(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
