"""The real engine with requests rendered by a process beside it: the same answers and the same refusals."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from pipeline.engine import rendering
from pipeline.engine.base import Answer
from pipeline.engine.environment import started_with
from pipeline.engine.parcel_folder import ParcelFolder
from pipeline.engine.vllm import VllmEngine
from pipeline.errors import Code, EngineError
from pipeline.models.packing import LoadedMedia
from tests.engine.conftest import ARGUMENTS, Demo, Hosted
from tests.engine.test_vllm import image, refused


class Rendering(Hosted):
    """An engine with one render worker; `parcels` is where they meet."""

    parcels: Path

    def __init__(self, by_file: bool) -> None:
        self._by_file = by_file
        super().__init__()

    def start(self) -> VllmEngine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rendering, "ParcelFolder", self._folder)
            return VllmEngine(ARGUMENTS, render_workers=1, figures=self.figures, by_file=self._by_file)

    def _folder(self) -> ParcelFolder:
        made = ParcelFolder()
        self.parcels = made.path
        return made


@pytest.fixture(scope="module", params=[False, True], ids=["through the socket", "by file"])
def beside(few_threads: None, request: pytest.FixtureRequest) -> Iterator[Rendering]:
    hosted = Rendering(request.param)
    yield hosted
    hosted.close()


def test_pictures_and_videos_get_their_own_answers(beside: Rendering, demo: Demo) -> None:
    rows = demo.rows(20)
    assert {"image", "video"} <= {key for row in rows for key in row}

    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*map(beside.engine.generate, demo.requests(rows)))

    answers = beside.run(all_at_once())
    assert [answer.text for answer in answers] == [row["answer"] for row in rows]
    assert list(beside.parcels.iterdir()) == []


def test_tensors_are_let_go_once_the_engine_has_them(beside: Rendering, demo: Demo) -> None:
    request = demo.request("held", [image(demo)], max_tokens=200)
    request.sampling.update(ignore_eos=True, stop_token_ids=[])

    async def mapped_while_answering() -> list[int]:
        begun = beside.figures.output_tokens
        answering = asyncio.create_task(beside.engine.generate(request))
        mapped = []
        while not answering.done():
            await asyncio.sleep(0.005)
            if beside.figures.output_tokens > begun:
                maps = Path("/proc/self/maps").read_text("utf-8")
                mapped.append(sum(str(beside.parcels) in line for line in maps.splitlines()))
        assert answering.result().output_tokens == 200
        return mapped

    mapped = beside.run(mapped_while_answering())
    assert len(mapped) > 20
    assert set(mapped[5:]) == {0}


def test_refusals_have_their_codes(beside: Rendering, demo: Demo) -> None:
    long = refused(beside, demo.request("long", [image(demo)], "Describe this image. " * 1000))
    assert (long.code, "1024" in long.reason) == (Code.PROMPT_TOO_LONG, True)
    ribbon = LoadedMedia("image", "ribbon", np.zeros((4, 1000, 3), np.uint8))
    odd = refused(beside, demo.request("ribbon", [ribbon]))
    assert (odd.code, "200" in odd.reason) == (Code.REQUEST_REJECTED, True)
    row = next(row for row in demo.rows(20) if "video" in row)
    bare = demo.request("bare", [replace(demo.media(row), uuid="without metadata")], row["question"])
    ((frames, _),) = bare.prompt["multi_modal_data"]["video"]
    bare.prompt["multi_modal_data"]["video"] = [frames]
    assert refused(beside, bare).code == Code.MISSING_METADATA
    assert list(beside.parcels.iterdir()) == []


def test_where_memory_for_requests_is_full_the_cure_is_told(
    beside: Rendering, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = demo.rows(1)
    (request,) = demo.requests([row])
    with monkeypatch.context() as patch:
        patch.setattr(rendering, "pack_parcel", full)
        with pytest.raises(EngineError, match=r"no room .* \(No space left on device\): .*--shm-size"):
            beside.run(beside.engine.generate(request))
    assert beside.run(beside.engine.generate(request)).text == row["answer"]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_killed_worker_counts_as_the_engines_death_and_the_first_process_is_not_needed(
    beside: Rendering, demo: Demo
) -> None:
    (row,) = demo.rows(1)
    (request,) = demo.requests([row])
    first = first_process()
    (fork,) = first.children()
    first.kill()
    assert beside.run(beside.engine.generate(request)).text == row["answer"]
    fork.kill()
    with pytest.raises(EngineError, match="a render process died"):
        beside.run(beside.engine.generate(request))
    beside.engine.close()
    assert not beside.parcels.exists()


def first_process() -> psutil.Process:
    """What loads the renderer, and forks; found by being spawned and having children, as no other."""
    (found,) = (
        process
        for process in psutil.Process().children()
        if process.status() != psutil.STATUS_ZOMBIE  # of an engine before
        and any("spawn_main" in word for word in process.cmdline())
        and process.children()
        and "EngineCore" not in process.name()
    )
    return found


def test_pixels_are_counted_in_every_form_that_a_request_has_them() -> None:
    picture, frames = Image.new("RGB", (20, 10)), np.zeros((4, 6, 5, 3), np.uint8)
    chunk = {"type": "image", "image": picture, "uuid": "u"}
    data = {"image": [picture, picture], "video": [(frames, {}), frames], "vision_chunk": [chunk]}
    # 20 x 10 x 3 bytes a picture, 4 x 6 x 5 x 3 a video.
    assert rendering._pixel_bytes({"multi_modal_data": data}) == 3 * 600 + 2 * 360


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAMESCRIBE_ONE", "the user's")
    monkeypatch.delenv("FRAMESCRIBE_TWO", raising=False)
    with started_with({"FRAMESCRIBE_ONE": "ours", "FRAMESCRIBE_TWO": "ours"}):
        assert (os.environ["FRAMESCRIBE_ONE"], os.environ["FRAMESCRIBE_TWO"]) == ("the user's", "ours")
    assert os.environ["FRAMESCRIBE_ONE"] == "the user's"
    assert "FRAMESCRIBE_TWO" not in os.environ
