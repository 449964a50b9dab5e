"""Ask an engine the questions of a batch, and turn answers and failures into result rows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import ray

from pipeline.engine.base import Answer, Engine
from pipeline.engine.budget import Budget
from pipeline.engine.figures import EngineFigures
from pipeline.engine.supervisor import HANG_SECONDS, EngineSupervisor
from pipeline.errors import Code, EngineError, ItemError, StorageError
from pipeline.models.packing import LoadedMedia
from pipeline.models.prompt import PromptBuilder
from pipeline.models.question import PAGE_TEXT, asked
from pipeline.results.schema import failed, result_schema
from pipeline.stages.asking import Asker, Refused
from pipeline.stages.batch import Batch, unpack_media, whole
from pipeline.stages.metrics import replica_metrics
from pipeline.stages.ready import UNWANTED
from pipeline.stages.replica import ReplicaMeter

WARMING = 8
"""Requests that a new engine answers before it counts as started: several at once take other kernels."""

CLOSING_SECONDS = 20.0
"""For the end of an engine's processes; Ray waits 30 s (`actor_graceful_shutdown_timeout_ms`)."""

_Place = tuple[int, str]


@dataclass(frozen=True)
class StartedEngine:
    """What `GenerateSetup.connect` brings up: an engine, and what turns items into its requests.

    `figures` are those that the engine adds to.
    """

    engine: Callable[[], Engine]
    builder: PromptBuilder
    sampling: dict[str, Any]
    figures: EngineFigures = field(default_factory=EngineFigures)


@dataclass(frozen=True)
class GenerateSetup:
    """All that an actor needs. `connect` runs on the actor's node, where the model's files are.

    `run` names the run in the rows that it answers. An engine that is not `eager` starts when the first item
    needs it: a run whose items are all known starts none.
    """

    connect: Callable[[], StartedEngine]
    tasks: dict[str, str]
    max_images: int
    max_restarts: int
    accept_truncated: bool
    request_log: str | None
    run: str = ""
    eager: bool = True
    hang_seconds: float = HANG_SECONDS
    pixels_in_flight: int = 4 * 2**30
    shrink_too_long: bool = False

    def asker(self, engine: EngineSupervisor, connection: StartedEngine) -> Asker:
        """What asks the engine."""
        return Asker(
            engine=engine,
            builder=connection.builder,
            sampling=connection.sampling,
            most_images=self.max_images,
            budget=Budget(self.pixels_in_flight),
            shrink=self.shrink_too_long,
        )


class Generate:
    """The actor that hosts one engine. Ray Data calls it for several batches at once."""

    def __init__(self, setup: GenerateSetup) -> None:
        self._engine: EngineSupervisor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._setup = setup
        self._broken: Exception | None = None
        self._asker: Asker | None = None
        self._start_seconds = 0.0
        name = _name()
        self._meter = ReplicaMeter(name)
        self._log = _open_log(setup.request_log, name)
        self._metrics = replica_metrics(name)
        self._warming = asyncio.Lock()
        self._is_warm = False
        if setup.eager:
            self._start()

    def _start(self) -> None:
        started = time.time()
        try:
            setup, connection = self._setup, self._setup.connect()
            self._engine = EngineSupervisor(
                connection.engine, setup.max_restarts, connection.figures, setup.hang_seconds
            )
            self._asker = setup.asker(self._engine, connection)
            self._meter.watch(connection.figures)
        except (EngineError, OSError, StorageError) as error:
            # Told by the first batch: Ray would start a failing actor again.
            self._broken = error
        self._start_seconds += time.time() - started

    def __del__(self) -> None:
        """Close the engine: Ray Data deletes an actor's instance when it ends the actor.

        Ray then kills the actor's children, and vLLM's would leave their shared memory behind.
        """
        if self._engine is None or self._loop is None or not self._loop.is_running():
            return
        if asyncio._get_running_loop() is self._loop:  # the last that held it was a batch
            self._engine.close()
            return
        closing = asyncio.run_coroutine_threadsafe(_close(self._engine), self._loop)
        with contextlib.suppress(TimeoutError):
            closing.result(CLOSING_SECONDS)

    async def __call__(self, row: pa.Table) -> AsyncIterator[pa.Table]:
        """One batch: prepared items in, result rows out.

        Where no engine can be had, the batch comes back empty with the reason in its stats as `fatal`:
        raised here, it would reach the driver as text amid Ray's, and cost the actor.
        """
        self._loop = asyncio.get_running_loop()
        batch = Batch.from_row(row)
        if "outage" in batch.stats:
            none = _result_table(batch.items["keep"].slice(0, 0), [])
            yield Batch(batch.shard, batch.start, batch.stop, none, batch.stats).to_row()
            return
        try:
            yield (await self._answer(batch)).to_row()
        except EngineError as error:
            none = _result_table(batch.items["keep"].slice(0, 0), [])
            stats = {**batch.stats, "fatal": str(error)}
            yield Batch(batch.shard, batch.start, batch.stop, none, stats).to_row()

    def _started(self) -> Asker:
        if self._asker is None:
            raise RuntimeError("an item asks an engine that was not started")
        return self._asker

    async def _answer(self, batch: Batch) -> Batch:
        media = unpack_media(batch.items["media"])
        items = batch.items.drop_columns(["media", "keep"]).to_pylist()
        places, open_places = _places(items, list(self._setup.tasks))

        def ask(place: tuple[int, str]) -> Awaitable[dict[str, Any]]:
            return self._result(items[place[0]], media[place[0]], place[1])

        with self._meter.batch():
            first = await self._warm_up(open_places[:WARMING], ask) if open_places else {}
            started = time.time()
            rest = [place for place in places if place not in first]
            answered = first | dict(zip(rest, await asyncio.gather(*map(ask, rest)), strict=True))
        results = [answered[place] for place in places]
        for result in results:
            result["manifest"] = batch.stats["manifest"]
        table = _result_table(batch.items["keep"].take([i for i, _ in places]), results)
        engine = self._meter.stats(self._engine, self._start_seconds)
        if self._metrics:
            self._metrics.show(engine)
        stats = {**batch.stats, "generate_start": started, "generate_end": time.time(), "engine": engine}
        return Batch(batch.shard, batch.start, batch.stop, table, stats)

    async def _warm_up(
        self, places: Sequence[_Place], ask: Callable[[_Place], Awaitable[dict[str, Any]]]
    ) -> dict[_Place, dict[str, Any]]:
        """Answer the engine's first items alone: kernels are compiled then, which belongs to its start."""
        async with self._warming:
            if self._engine is None and self._broken is None:
                await asyncio.to_thread(self._start)
            if self._broken is not None:
                raise EngineError(str(self._broken)) from self._broken
            if self._is_warm:
                return {}
            started = time.time()
            results = await asyncio.gather(*map(ask, places))
            self._is_warm = True
            self._start_seconds += time.time() - started
            return dict(zip(places, results, strict=True))

    async def _result(self, item: dict[str, Any], media: Sequence[LoadedMedia], task: str) -> dict[str, Any]:
        position = list(self._setup.tasks).index(task)
        text = PAGE_TEXT if item["page_text"] is None else item["page_text"]
        words = item["question"], self._setup.tasks[task], text
        result: dict[str, Any] = {
            "id": item["id"],
            "task": task,
            "question": asked(*words),
            "attempts": 0,
            "item_uuid": item["item_uuids"][position] if item["item_uuids"] else None,
            "media_uuids": item["media_uuids"],
            "media_versions": item["media_versions"],
            "recovered": item["recovered"],
            "prepare_seconds": item["seconds"],
            "row": item["row"],
        }
        if ready := item["ready"][position]:
            return {**result, **ready}
        if item["error_code"]:
            return result | failed(item["error_code"], item["error"], Code(item["error_code"]).retryable)
        started = time.perf_counter()
        try:
            result |= await self._ask(words, media, result["item_uuid"])
        except Refused as error:
            result |= failed(error.code.value, error.reason, error.code.retryable)
            result["attempts"] = error.attempts
        return result | {"generate_seconds": time.perf_counter() - started}

    async def _ask(
        self, words: tuple[str | None, str, str], media: Sequence[LoadedMedia], uuid: str
    ) -> dict[str, Any]:
        if self._log:
            self._log.write(json.dumps({"item_uuid": uuid, "time": time.time()}) + "\n")
        asker = self._started()
        try:
            question = asked(*words, asker.builder.quoted)
        except ItemError as error:
            raise Refused(error, 0) from error
        with self._meter.request():
            answer, attempts = await asker.ask(uuid, question, media)
        columns: dict[str, Any] = {
            "status": "ok",
            "text": answer.text,
            "source": "engine",
            "run": self._setup.run,
            "attempts": attempts,
            "finish_reason": answer.finish_reason,
            "prompt_tokens": answer.prompt_tokens,
            "output_tokens": answer.output_tokens,
        }
        if answer.finish_reason == "stop" or (
            answer.finish_reason == "length" and self._setup.accept_truncated
        ):
            return columns
        if answer.finish_reason == "length":
            return columns | failed(
                Code.OUTPUT_TRUNCATED.value, _why_cut(answer, asker.sampling.get("max_tokens")), False
            )
        reason = f"the engine ended the answer with {answer.finish_reason!r}"
        return columns | failed(Code.ENGINE_FAILED.value, reason, Code.ENGINE_FAILED.retryable)


def _places(items: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> tuple[list[_Place], list[_Place]]:
    """The results that a batch shall have, as (item, task), and those of them that need the engine."""
    ready = {(i, task): item["ready"][t] for i, item in enumerate(items) for t, task in enumerate(tasks)}
    wanted = [place for place, one in ready.items() if not one or one["status"] != UNWANTED]
    return wanted, [place for place in wanted if not ready[place] and not items[place[0]]["error_code"]]


def _why_cut(answer: Answer, max_tokens: int | None) -> str:
    """vLLM clips an answer in silence where prompt and answer together fill its context."""
    clipped = max_tokens is not None and answer.output_tokens < max_tokens
    where = "by the engine's context (engine.args.max_model_len)" if clipped else "at sampling.max_tokens"
    return f"the answer was cut off {where}; `text` has what there is"


async def _close(engine: EngineSupervisor) -> None:
    engine.close()


def _name() -> str:
    node = ray.get_runtime_context().get_node_id()[:8] if ray.is_initialized() else "no-ray"
    return f"{socket.gethostname()}-{node}-{os.getpid()}"


def _open_log(folder: str | None, name: str) -> TextIO | None:
    if folder is None:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return (Path(folder) / f"{name}.jsonl").open("a", buffering=1)


def _result_table(keep: pa.ChunkedArray, results: Sequence[Mapping[str, Any]]) -> pa.Table:
    kept = whole(keep)
    fields = list(kept.type)
    schema = result_schema(pa.schema(fields))
    names = {field.name for field in fields}
    columns = [
        kept.field(field.name)
        if field.name in names
        else pa.array([result.get(field.name) for result in results], field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
