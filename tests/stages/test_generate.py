"""The generate stage on an engine of the test's own: what answers and failures become."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import ray

from pipeline.engine.base import Answer, Engine, Request
from pipeline.errors import Code, EngineError, ItemError
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec
from pipeline.results.dedup import Claim, Dedup, Settled
from pipeline.stages import generate
from pipeline.stages.batch import Batch
from pipeline.stages.generate import Generate, GenerateSetup, StartedEngine
from pipeline.stages.prepare import Prepare
from pipeline.stages.ready import OUTCOME
from tests.e2e.conftest import local_ray  # noqa: F401 (a fixture)

BUILDER = PromptBuilder(load_spec("qwen2_5_vl"))


class Scripted:
    """Answers with the question's first word, or does what the question says."""

    async def generate(self, request: Request) -> Answer:
        await asyncio.sleep(0)
        if "What colour?" in request.prompt["prompt"]:
            raise ItemError(Code.PROMPT_TOO_LONG, "too long")
        if "Read." in request.prompt["prompt"]:
            return Answer("half an ans", "length", 7, 3)
        return Answer(f"{len(request.prompt['multi_modal_data']['image'])} images", "stop", 5, 2)

    def close(self) -> None:
        pass


class Dead:
    def __init__(self) -> None:
        raise EngineError("vLLM cannot start: no such weights")


def setup_of(start: Callable[[], Engine], sampling: dict[str, Any] | None = None) -> GenerateSetup:
    return GenerateSetup(
        connect=lambda: StartedEngine(start, BUILDER, sampling or {}),
        tasks={"caption": "Describe.", "ocr": "Read."},
        max_images=3,
        max_restarts=0,
        accept_truncated=False,
        request_log=None,
        run="this-run",
    )


def answer(
    start: Callable[[], Engine],
    row: pa.Table,
    *,
    log: Path | None = None,
    accept_truncated: bool = False,
    eager: bool = True,
    sampling: dict[str, Any] | None = None,
) -> Batch:
    setup = replace(
        setup_of(start, sampling),
        accept_truncated=accept_truncated,
        request_log=str(log) if log else None,
        eager=eager,
    )

    async def one() -> pa.Table:
        return await anext(Generate(setup)(row))

    return Batch.from_row(asyncio.run(one()))


def test_each_item_and_task_makes_one_row(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    rows = answer(Scripted, prepare(manifest_rows[0])).items.to_pylist()
    assert [(row["id"], row["task"], row["status"], row["error_code"], row["text"]) for row in rows] == [
        ("one", "caption", "ok", None, "1 images"),
        ("one", "ocr", "failed", "output_truncated", "half an ans"),
        ("own-question", "caption", "failed", "prompt_too_long", None),
        ("own-question", "ocr", "waiting", None, None),
        ("two", "caption", "ok", None, "2 images"),
        ("two", "ocr", "failed", "output_truncated", "half an ans"),
        ("missing", "caption", "failed", "fetch_not_found", None),
        ("missing", "ocr", "failed", "fetch_not_found", None),
    ]
    assert [row["n"] for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [row["question"] for row in rows[1:3]] == ["Read.", "What colour?"]
    assert (rows[0]["prompt_tokens"], rows[0]["output_tokens"], rows[0]["attempts"]) == (5, 2, 1)
    assert (rows[6]["attempts"], rows[6]["retryable"], rows[6]["source"]) == (0, False, None)
    assert {row["manifest"] for row in rows} == {"m.jsonl"}


@pytest.mark.parametrize(("max_tokens", "where"), [(3, "sampling.max_tokens"), (48, "max_model_len")])
def test_a_truncated_answer_says_what_cut_it(
    prepare: Prepare, manifest_rows: list[pa.Table], max_tokens: int, where: str
) -> None:
    rows = answer(Scripted, prepare(manifest_rows[0]), sampling={"max_tokens": max_tokens}).items.to_pylist()
    assert rows[1]["output_tokens"] == 3
    assert where in rows[1]["error"]


def test_truncated_answers_can_be_accepted(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    rows = answer(Scripted, prepare(manifest_rows[0]), accept_truncated=True).items.to_pylist()
    assert (rows[1]["status"], rows[1]["finish_reason"], rows[1]["error_code"]) == ("ok", "length", None)


class Watched(Scripted):
    """Notes for each request how many were answered when it came."""

    answered_before: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.answered_before.clear()
        self._answered = 0

    async def generate(self, request: Request) -> Answer:
        self.answered_before.append(self._answered)
        try:
            return await super().generate(request)
        finally:
            self._answered += 1


def test_a_new_engine_answers_its_first_requests_together_before_all_others(
    prepare: Prepare, manifest_rows: list[pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "WARMING", 2)
    answer(Watched, prepare(manifest_rows[0]))
    # Five of its rows need the engine.
    assert Watched.answered_before == [0, 0, 2, 2, 2]


def test_an_engine_that_cannot_start_is_told_in_band_with_its_reason(
    prepare: Prepare, manifest_rows: list[pa.Table]
) -> None:
    batch = answer(Dead, prepare(manifest_rows[0]))
    assert batch.stats["fatal"] == "vLLM cannot start: no such weights"
    assert batch.items.num_rows == 0


def test_the_request_log_has_a_line_for_each_request(
    prepare: Prepare, manifest_rows: list[pa.Table], tmp_path: Path
) -> None:
    batch = answer(Scripted, prepare(manifest_rows[0]), log=tmp_path / "log")
    (file,) = (tmp_path / "log").glob("*.jsonl")
    asked = [json.loads(line)["item_uuid"] for line in file.read_text("utf-8").splitlines()]
    uuids = [row["item_uuid"] for row in batch.items.to_pylist() if row["item_uuid"]]
    assert sorted(asked) == sorted(set(uuids))
    assert (len(asked), len(uuids)) == (5, 6)  # one row asks both tasks the same


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_answer_that_did_not_end_is_a_failure(
    prepare: Prepare, manifest_rows: list[pa.Table], reason: str
) -> None:
    class Broken(Scripted):
        async def generate(self, request: Request) -> Answer:
            return Answer("…", reason, 1, 1)

    rows = answer(Broken, prepare(manifest_rows[0])).items.to_pylist()
    assert (rows[0]["status"], rows[0]["error_code"], rows[0]["retryable"]) == ("failed", "engine_failed", True)
    assert reason in rows[0]["error"]


def test_what_is_known_needs_no_engine_and_no_pixels(prepare: Prepare, manifest_rows: list[pa.Table]) -> None:
    first = answer(Scripted, prepare(manifest_rows[0]), accept_truncated=True)
    known = Dedup([])
    ok = [row for row in first.items.to_pylist() if row["status"] == "ok"]
    known.settle([Settled(Claim(row["item_uuid"], "elsewhere"), {n: row[n] for n in OUTCOME}) for row in ok])
    own = [row for row in first.items.to_pylist() if row["error_code"] == "prompt_too_long"]
    known.settle([Settled(Claim(row["item_uuid"], "elsewhere"), {n: row[n] for n in OUTCOME}) for row in own])
    row = replace(prepare, answers=known)(manifest_rows[0])
    assert [len(media) for media in Batch.from_row(row).items["media"].to_pylist()] == [0, 0, 0, 0]
    rows = answer(Dead, row, eager=False).items.to_pylist()
    assert [(row["status"], row["text"], row["source"], row["attempts"]) for row in rows] == [
        ("ok", "1 images", "duplicate", 0),
        ("ok", "half an ans", "duplicate", 0),
        ("failed", None, "duplicate", 0),
        ("failed", None, "duplicate", 0),
        ("ok", "2 images", "duplicate", 0),
        ("ok", "half an ans", "duplicate", 0),
        ("failed", None, None, 0),
        ("failed", None, None, 0),
    ]
    assert {row["run"] for row in rows[:2]} == {"this-run"}
    lazily = answer(Dead, prepare(manifest_rows[0]), eager=False)
    assert lazily.stats["fatal"] == "vLLM cannot start: no such weights"


@pytest.mark.usefixtures("local_ray")
def test_an_engine_is_closed_in_its_loop_when_ray_ends_its_actor(
    prepare: Prepare, manifest_rows: list[pa.Table], tmp_path: Path
) -> None:
    closed = tmp_path / "closed"

    class Closing(Scripted):
        async def generate(self, request: Request) -> Answer:
            self.loop = asyncio.get_running_loop()
            return await super().generate(request)

        def close(self) -> None:
            closed.write_text(str(asyncio.get_running_loop() is self.loop))

    setup = setup_of(Closing)
    answered = ray.data.from_arrow(prepare(manifest_rows[0])).map_batches(
        Generate, fn_constructor_args=[setup], batch_size=1, batch_format="pyarrow", concurrency=1, num_cpus=0.5
    )
    assert len(answered.take_all()) == 1
    deadline = time.monotonic() + 60
    while not closed.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert closed.read_text() == "True"


def test_an_engine_is_closed_at_once_where_a_batch_is_the_last_to_hold_it(
    prepare: Prepare, manifest_rows: list[pa.Table]
) -> None:
    closed = []

    class Closing(Scripted):
        def close(self) -> None:
            closed.append(True)

    async def all_of_it() -> list[bool]:
        assert len([row async for row in Generate(setup_of(Closing))(prepare(manifest_rows[0]))]) == 1
        return list(closed)

    assert asyncio.run(all_of_it()) == [True]
