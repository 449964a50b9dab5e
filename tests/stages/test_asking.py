"""Asking about an item: prompts that are too long, attempts that are counted, a budget that is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.engine.base import Answer, Request
from pipeline.engine.budget import Budget
from pipeline.engine.supervisor import EngineSupervisor
from pipeline.errors import Code, EngineError, ItemError
from pipeline.models.packing import LoadedMedia
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec
from pipeline.stages.asking import Asker, Refused


class Narrow:
    """Takes `most` pixels in a request, keeps what it was given, and dies of the word `die`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.given: list[dict[str, Any]] = []
        self.in_hand = self.most_in_hand = 0

    async def generate(self, request: Request) -> Answer:
        if "die" in request.prompt["prompt"]:
            raise EngineError("dead")
        self.given.append(request.prompt)
        data = request.prompt["multi_modal_data"]
        pixels = sum(image.width * image.height for image in data.get("image", []))
        pixels += sum(
            frames.shape[0] * frames.shape[1] * frames.shape[2] for frames, _ in data.get("video", [])
        )
        if pixels > self.most:
            raise ItemError(Code.PROMPT_TOO_LONG, f"{pixels} pixels")
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        await asyncio.sleep(0.001)
        self.in_hand -= 1
        return Answer("an answer", "stop", 1, 1)

    def close(self) -> None:
        pass


def image(side: int, uuid: str = "image") -> LoadedMedia:
    return LoadedMedia("image", uuid, np.full((side, side, 3), 100, np.uint8))


def video(frames: int, side: int) -> LoadedMedia:
    metadata = {"fps": 2.0, "duration": 8.0, "total_num_frames": 160, "frames_indices": list(range(frames))}
    pixels = np.arange(frames, dtype=np.uint8)[:, None, None, None].repeat(side, 1).repeat(side, 2).repeat(3, 3)
    return LoadedMedia("video", "video", np.ascontiguousarray(pixels), metadata)


def ask(
    engine: Narrow, *media: LoadedMedia, shrink: bool = True, question: str = "What?"
) -> tuple[Answer, int]:
    async def work() -> tuple[Answer, int]:
        asker = asker_of(engine, shrink=shrink)
        return await asker.ask("uuid", question, media)

    return asyncio.run(work())


def asker_of(engine: Narrow, shrink: bool = True, budget: int = 2**30) -> Asker:
    supervisor = EngineSupervisor(lambda: engine, max_restarts=3)
    return Asker(supervisor, PromptBuilder(load_spec("qwen2_5_vl")), {}, 4, Budget(budget), shrink)


def test_an_image_that_fits_is_sent_as_it_is() -> None:
    engine = Narrow(100 * 100)
    assert ask(engine, image(100)) == (Answer("an answer", "stop", 1, 1), 1)
    assert engine.given[0]["multi_modal_uuids"] == {"image": ["image"]}


def test_an_image_that_does_not_is_halved_until_it_does_and_has_another_uuid_each_time() -> None:
    engine = Narrow(100 * 100)
    _, attempts = ask(engine, image(200))
    sizes = [request["multi_modal_data"]["image"][0].size for request in engine.given]
    assert sizes == [(200, 200), (141, 141), (100, 100)]
    assert attempts == 3
    uuids = [request["multi_modal_uuids"]["image"][0] for request in engine.given]
    assert len(set(uuids)) == 3


def test_of_a_video_every_second_frame_stays_with_its_number() -> None:
    engine = Narrow(4 * 100 * 100)
    ask(engine, video(16, 100))
    frames, metadata = engine.given[-1]["multi_modal_data"]["video"][0]
    assert frames[:, 0, 0, 0].tolist() == metadata["frames_indices"] == [0, 4, 8, 12]
    assert (metadata["fps"], metadata["duration"], metadata["total_num_frames"]) == (2.0, 8.0, 160)


def test_several_images_are_all_halved() -> None:
    engine = Narrow(2 * 141 * 141)
    ask(engine, image(200, "a"), image(200, "b"))
    assert [one.size for one in engine.given[-1]["multi_modal_data"]["image"]] == [(141, 141)] * 2
    assert len(set(engine.given[-1]["multi_modal_uuids"]["image"])) == 2


@pytest.mark.parametrize(("shrink", "attempts"), [(False, 1), (True, 6)])
def test_what_never_fits_is_refused_with_its_attempts(shrink: bool, attempts: int) -> None:
    with pytest.raises(Refused) as refused:
        ask(Narrow(0), image(2000), shrink=shrink)
    assert (refused.value.code, refused.value.attempts) == (Code.PROMPT_TOO_LONG, attempts)


def test_a_picture_that_is_a_token_or_so_is_not_halved() -> None:
    engine = Narrow(0)
    with pytest.raises(Refused):
        ask(engine, image(30))
    assert len(engine.given) == 1


def test_the_same_pixels_halved_have_the_same_uuid_and_others_another() -> None:
    def last_uuid(media: LoadedMedia) -> str:
        engine = Narrow(100 * 100)
        ask(engine, media)
        return str(engine.given[-1]["multi_modal_uuids"]["image"][0])

    assert last_uuid(image(200)) == last_uuid(image(200)) != last_uuid(replace(image(200), uuid="other"))


def test_an_item_that_kills_engines_tells_how_often_it_was_sent() -> None:
    with pytest.raises(Refused) as refused:
        ask(Narrow(10**6), image(100), question="die")
    assert (refused.value.code, refused.value.attempts) == (Code.ENGINE_CRASH, 2)


def test_what_is_in_hand_is_bounded_by_its_pixels_and_not_by_its_number() -> None:
    async def in_hand(side: int) -> int:
        engine = Narrow(10**9)
        asker = asker_of(engine, budget=10 * 3 * 100 * 100)
        await asyncio.gather(*(asker.ask(str(n), "What?", [image(side, str(n))]) for n in range(50)))
        return engine.most_in_hand

    assert asyncio.run(in_hand(100)) == 10
    assert asyncio.run(in_hand(200)) == 2
    assert asyncio.run(in_hand(400)) == 1
