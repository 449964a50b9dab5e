"""Ask an engine the questions of a batch, and turn answers and failures into result rows."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import ray

from pipeline.engine.base import Engine, Request
from pipeline.engine.supervisor import EngineSupervisor
from pipeline.errors import Code, EngineError, ItemError, StorageError
from pipeline.models.packing import pack
from pipeline.models.prompt import PromptBuilder
from pipeline.results.schema import failed, result_schema
from pipeline.stages.batch import Batch, unpack_media
from pipeline.stages.ready import UNWANTED

_Place = tuple[int, str]


@dataclass(frozen=True)
class StartedEngine:
    """What `GenerateSetup.start` brings up: an engine, and what turns items into its requests."""

    engine: Callable[[], Engine]
    builder: PromptBuilder
    sampling: dict[str, Any]


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


class Generate:
    """The actor that hosts one engine. Ray Data calls it for several batches at once."""

    def __init__(self, setup: GenerateSetup) -> None:
        self._setup = setup
        self._broken: Exception | None = None
        self._engine: EngineSupervisor | None = None
        self._start_seconds = 0.0
        self._name = _name()
        self._log = _open_log(setup.request_log, self._name)
        self._numbers = itertools.count()
        self._meter = _Meter()
        self._warming = asyncio.Lock()
        self._is_warm = False
        if setup.eager:
            self._start()

    def _start(self) -> None:
        started = time.time()
        try:
            connection = self._setup.connect()
            self._builder, self._sampling = connection.builder, connection.sampling
            self._engine = EngineSupervisor(connection.engine, self._setup.max_restarts)
        except (EngineError, OSError, StorageError) as error:
            # Told by the first batch: Ray would start a failing actor again.
            self._broken = error
        self._start_seconds += time.time() - started

    async def __call__(self, row: pa.Table) -> AsyncIterator[pa.Table]:
        """One batch: prepared items in, result rows out.

        Where no engine can be had, the batch comes back empty with the reason in its stats as `fatal`:
        raised here, it would reach the driver as text amid Ray's, and cost the actor.
        """
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

    def _started(self) -> EngineSupervisor:
        if self._engine is None:
            raise RuntimeError("an item asks an engine that was not started")
        return self._engine

    async def _answer(self, batch: Batch) -> Batch:
        media = batch.items["media"].combine_chunks()
        items = batch.items.drop_columns(["media", "keep"]).to_pylist()
        places, open_places = _places(items, list(self._setup.tasks))

        def ask(place: tuple[int, str]) -> Awaitable[dict[str, Any]]:
            return self._result(items[place[0]], media[place[0]], place[1])

        with self._meter:
            first = await self._warm_up(open_places[0], ask) if open_places else {}
            started = time.time()
            rest = [place for place in places if place not in first]
            answered = first | dict(zip(rest, await asyncio.gather(*map(ask, rest)), strict=True))
        results = [answered[place] for place in places]
        for result in results:
            result["manifest"] = batch.stats["manifest"]
        table = _result_table(batch.items["keep"].take([i for i, _ in places]), results)
        stats = {
            **batch.stats,
            "generate_start": started,
            "generate_end": time.time(),
            "engine": {
                "name": self._name,
                "start_seconds": self._start_seconds,
                "idle_seconds": self._meter.idle_seconds,
                "restarts": self._engine.restarts if self._engine else 0,
            },
        }
        return Batch(batch.shard, batch.start, batch.stop, table, stats)

    async def _warm_up(
        self, place: _Place, ask: Callable[[_Place], Awaitable[dict[str, Any]]]
    ) -> dict[_Place, dict[str, Any]]:
        """Answer the engine's first item alone: kernels are compiled then, which belongs to its start."""
        async with self._warming:
            if self._engine is None and self._broken is None:
                await asyncio.to_thread(self._start)
            if self._broken is not None:
                raise EngineError(str(self._broken)) from self._broken
            if self._is_warm:
                return {}
            started = time.time()
            result = await ask(place)
            self._is_warm = True
            self._start_seconds += time.time() - started
            return {place: result}

    async def _result(self, item: dict[str, Any], media: pa.Scalar, task: str) -> dict[str, Any]:
        position = list(self._setup.tasks).index(task)
        question = item["question"] or self._setup.tasks[task]
        result: dict[str, Any] = {
            "id": item["id"],
            "task": task,
            "question": question,
            "attempts": 0,
            "item_uuid": item["item_uuids"][position] if item["item_uuids"] else None,
            "media_uuids": item["media_uuids"],
            "media_versions": item["media_versions"],
            "prepare_seconds": item["seconds"],
            "row": item["row"],
        }
        if ready := item["ready"][position]:
            return {**result, **ready}
        if item["error_code"]:
            return result | failed(item["error_code"], item["error"], Code(item["error_code"]).retryable)
        started = time.perf_counter()
        try:
            result |= await self._ask(question, media, result["item_uuid"])
        except ItemError as error:
            result |= failed(error.code.value, error.reason, error.code.retryable)
            result["attempts"] = max(1, result["attempts"])
        return result | {"generate_seconds": time.perf_counter() - started}

    async def _ask(self, question: str, media: pa.Scalar, uuid: str) -> dict[str, Any]:
        loaded = [unpack_media(one) for one in media]
        prompt = pack(self._builder, question, loaded, self._setup.max_images)
        request = Request(f"{uuid}-{next(self._numbers)}", prompt, self._sampling)
        if self._log:
            self._log.write(json.dumps({"item_uuid": uuid, "time": time.time()}) + "\n")
        answer, attempts = await self._started().generate(request)
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
            reason = "the answer was cut off at sampling.max_tokens; `text` has what there is"
            return columns | failed(Code.OUTPUT_TRUNCATED.value, reason, False)
        reason = f"the engine ended the answer with {answer.finish_reason!r}"
        return columns | failed(Code.ENGINE_FAILED.value, reason, Code.ENGINE_FAILED.retryable)


def _places(items: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> tuple[list[_Place], list[_Place]]:
    """The results that a batch shall have, as (item, task), and those of them that need the engine."""
    ready = {(i, task): item["ready"][t] for i, item in enumerate(items) for t, task in enumerate(tasks)}
    wanted = [place for place, one in ready.items() if not one or one["status"] != UNWANTED]
    return wanted, [place for place in wanted if not ready[place] and not items[place[0]]["error_code"]]


class _Meter:
    """Measures how long no batch was in hand, since the first one came."""

    def __init__(self) -> None:
        self._inside = 0
        self._idle_since: float | None = None
        self.idle_seconds = 0.0

    def __enter__(self) -> None:
        if self._inside == 0 and self._idle_since is not None:
            self.idle_seconds += time.monotonic() - self._idle_since
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        if self._inside == 0:
            self._idle_since = time.monotonic()


def _name() -> str:
    node = ray.get_runtime_context().get_node_id()[:8] if ray.is_initialized() else "no-ray"
    return f"{socket.gethostname()}-{node}-{os.getpid()}"


def _open_log(folder: str | None, name: str) -> TextIO | None:
    if folder is None:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return (Path(folder) / f"{name}.jsonl").open("a", buffering=1)


def _result_table(keep: pa.ChunkedArray, results: Sequence[Mapping[str, Any]]) -> pa.Table:
    kept = keep.combine_chunks()
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
