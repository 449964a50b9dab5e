"""The real vLLM engine on the demo model: right answers, and failures that say whose they are."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.engine.base import Answer, Request
from pipeline.engine.vllm import VllmEngine, _code_of
from pipeline.errors import Code, EngineError, ItemError
from pipeline.models.packing import LoadedMedia
from tests.engine.conftest import ARGUMENTS, Demo, Hosted


def refused(hosted: Hosted, request: Request) -> ItemError:
    with pytest.raises(ItemError) as error:
        hosted.run(hosted.engine.generate(request))
    return error.value


def image(demo: Demo) -> LoadedMedia:
    return demo.media(demo.rows(1)[0])


def test_twenty_requests_at_once_get_their_own_answers(hosted: Hosted, demo: Demo) -> None:
    rows = demo.rows(20)
    assert len({row["answer"] for row in rows}) == 20
    assert {"image", "video"} <= {key for row in rows for key in row}

    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*map(hosted.engine.generate, demo.requests(rows)))

    answers = hosted.run(all_at_once())
    assert [answer.text for answer in answers] == [row["answer"] for row in rows]
    assert {answer.finish_reason for answer in answers} == {"stop"}
    assert all(answer.output_tokens < 48 and answer.prompt_tokens > 20 for answer in answers)


def test_the_prompt_tokens_are_those_with_the_picture_in(hosted: Hosted, demo: Demo) -> None:
    def tokens(side: int) -> int:
        pixels = np.full((side, side, 3), 255, np.uint8)
        request = demo.request(f"tokens-{side}", [LoadedMedia("image", f"white-{side}", pixels)])
        return hosted.run(hosted.engine.generate(request)).prompt_tokens

    # 28 x 28 pixels a token.
    assert tokens(280) - tokens(140) == 10 * 10 - 5 * 5


def test_a_second_question_about_a_picture_finds_it_in_the_caches(hosted: Hosted, demo: Demo) -> None:
    (row,) = demo.rows(1)
    media = replace(image(demo), uuid="asked twice")

    def asked(question: str) -> tuple[str, int, int, int]:
        before = replace(hosted.figures)
        answer = hosted.run(hosted.engine.generate(demo.request(f"ask {question}", [media], question)))
        after = hosted.figures
        return (
            answer.text,
            after.media_queries - before.media_queries,
            after.media_hits - before.media_hits,
            after.prefix_hits - before.prefix_hits,
        )

    first, second = asked(row["question"]), asked("What colour is it?")
    assert first[:3] == (row["answer"], 1, 0)
    # The pixels are rendered once; all of their tokens but those of a broken block are computed once.
    height, width, _ = media.pixels.shape
    assert second[1:3] == (1, 1)
    assert second[3] >= (height // 28) * (width // 28) // 32 * 32 > first[3]


def test_figures_count_what_the_engine_did(hosted: Hosted, demo: Demo) -> None:
    before = replace(hosted.figures)
    answer = hosted.run(hosted.engine.generate(demo.request("counted", [replace(image(demo), uuid="counted")])))
    after = hosted.figures
    assert after.prompt_tokens - before.prompt_tokens == answer.prompt_tokens
    assert after.output_tokens - before.output_tokens == answer.output_tokens
    assert after.steps - before.steps >= answer.output_tokens
    assert after.last_step > before.last_step
    assert 0 < after.kv_cache_peak <= 1


def test_an_answer_cut_off_says_so(hosted: Hosted, demo: Demo) -> None:
    answer = hosted.run(hosted.engine.generate(demo.request("cut", [image(demo)], max_tokens=2)))
    assert (answer.finish_reason, answer.output_tokens) == ("length", 2)


def test_a_prompt_that_is_too_long(hosted: Hosted, demo: Demo) -> None:
    error = refused(hosted, demo.request("long", [image(demo)], "Describe this image. " * 1000))
    assert error.code == Code.PROMPT_TOO_LONG
    assert "1024" in error.reason
    assert not error.code.retryable


def test_media_with_more_tokens_than_the_encoder_keeps_are_too_long_too() -> None:
    told = (
        "The decoder prompt contains a(n) video item with 9568 embedding tokens, which exceeds the "
        "pre-allocated encoder cache size 8960. Please reduce the input size"
    )  # vLLM 0.32, for 16 frames of 720p where `max_num_batched_tokens` was smaller
    assert _code_of(told) == Code.PROMPT_TOO_LONG


def test_more_images_than_the_engine_was_started_for(hosted: Hosted, demo: Demo) -> None:
    error = refused(hosted, demo.request("two", [image(demo), demo.media(demo.rows(2)[1])]))
    assert error.code == Code.TOO_MANY_MEDIA
    assert "1" in error.reason


def test_a_video_without_its_metadata(hosted: Hosted, demo: Demo) -> None:
    row = next(row for row in demo.rows(20) if "video" in row)
    request = demo.request("bare", [replace(demo.media(row), uuid="without metadata")], row["question"])
    ((frames, _),) = request.prompt["multi_modal_data"]["video"]
    request.prompt["multi_modal_data"]["video"] = [frames]
    error = refused(hosted, request)
    assert error.code == Code.MISSING_METADATA
    assert "metadata" in error.reason


def test_a_picture_that_the_processor_refuses(hosted: Hosted, demo: Demo) -> None:
    # Qwen's processor takes no picture that is more than 200 times as long as wide.
    ribbon = LoadedMedia("image", "ribbon", np.zeros((4, 1000, 3), np.uint8))
    error = refused(hosted, demo.request("ribbon", [ribbon]))
    assert error.code == Code.REQUEST_REJECTED
    assert "200" in error.reason


def test_the_engine_outlives_what_it_refused(hosted: Hosted, demo: Demo) -> None:
    (row,) = demo.rows(1)
    refused(hosted, demo.request("long again", [image(demo)], "Describe this image. " * 1000))
    (request,) = demo.requests([row])
    assert hosted.run(hosted.engine.generate(request)).text == row["answer"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"no_such_argument": 1}, "no_such_argument"),
        ({"max_model_len": "many"}, "max_model_len"),
        ({"model": "/no/such/folder"}, "/no/such/folder"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(EngineError, match=named):
        VllmEngine({**ARGUMENTS, **wrong})


@pytest.mark.usefixtures("few_threads")
def test_missing_weights_are_named_though_another_process_missed_them(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(ARGUMENTS["model"], model, ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(
        EngineError, match=f"cannot start: RuntimeError: Cannot find any model weights.*{model}"
    ):
        VllmEngine({**ARGUMENTS, "model": str(model)})


@pytest.mark.usefixtures("few_threads")
def test_too_little_memory_is_answered_by_the_settings_to_lower() -> None:
    with pytest.raises(EngineError, match=r"memory.*; memory: lower engine\.args\.max_model_len \(now 1024\)"):
        VllmEngine({**ARGUMENTS, "kv_cache_memory_bytes": 2**50})
