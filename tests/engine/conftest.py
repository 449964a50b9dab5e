"""One real engine for all tests here, on the demo model, and the demo's questions with their right answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pipeline.config import MediaConfig
from pipeline.engine.base import Request
from pipeline.engine.figures import EngineFigures
from pipeline.engine.vllm import VllmEngine
from pipeline.media.load import MediaLoader
from pipeline.models.packing import LoadedMedia, pack
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec

DEMO = Path(__file__).resolve().parents[2] / "demo"
ARGUMENTS: dict[str, Any] = {
    "model": str(DEMO / "model"),
    "max_model_len": 1024,
    "dtype": "float32",
    "enforce_eager": True,
    "kv_cache_memory_bytes": 64 * 2**20,
    "limit_mm_per_prompt": {"image": 1, "video": 1},
    "block_size": 32,  # tokens that the prefix cache keeps together
}

Result = TypeVar("Result")


class Hosted:
    """The engine, the event loop that it belongs to, and how to get another one when it is dead."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.figures = EngineFigures()
        self.engine = self.start()

    def start(self) -> VllmEngine:
        return VllmEngine(ARGUMENTS, figures=self.figures)

    def replace(self) -> VllmEngine:
        self.engine = self.start()
        return self.engine

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self.run(self._close())
        self._loop.close()

    async def _close(self) -> None:
        # In its own loop: else vLLM's sockets stay open, and collecting them as garbage waits for ever.
        self.engine.close()
        del self.engine
        await asyncio.sleep(0.1)


@pytest.fixture(scope="package")
def few_threads() -> Iterator[None]:
    """More threads than free cores make a tiny model slower by far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="package")  # not session: the tests after these have engines of their own
def hosted(few_threads: None) -> Iterator[Hosted]:
    hosted = Hosted()
    yield hosted
    hosted.close()


class Demo:
    """Rows of the demo dataset as requests."""

    def __init__(self) -> None:
        spec = load_spec("qwen2_5_vl")
        self._folder = DEMO / "dataset"
        lines = (self._folder / "manifest.jsonl").read_text("utf-8").splitlines()
        self._rows = [json.loads(line) for line in lines]
        config = MediaConfig.model_validate(
            {"max_pixels": 200704, "video": {"fps": 2, "max_frames": 8}}  # as conf/quickstart.yaml
        )
        self._loader = MediaLoader.of(config, spec)
        self._builder = PromptBuilder(spec)

    def rows(self, count: int) -> list[dict[str, Any]]:
        """So many rows: pictures of shapes and videos, all with different answers."""
        return [row for row in self._rows if not row["id"].startswith("text-")][:count]

    def media(self, row: dict[str, Any]) -> LoadedMedia:
        kind = "video" if "video" in row else "image"
        return self._loader.load(kind, (self._folder / row[kind]).read_bytes())[1]  # type: ignore[arg-type]

    def request(
        self, id: str, media: list[LoadedMedia], question: str = "Describe this image.", **sampling: Any
    ) -> Request:
        prompt = pack(self._builder, question, media, limit=8)
        return Request(id, prompt, {"temperature": 0, "max_tokens": 48, **sampling})

    def requests(self, rows: list[dict[str, Any]]) -> list[Request]:
        return [self.request(row["id"], [self.media(row)], row["question"]) for row in rows]


@pytest.fixture(scope="session")
def demo() -> Demo:
    return Demo()
