"""Renders requests (tokens, and the Hugging Face processor's tensors) in processes beside the engine.

vLLM renders multimodal requests on one thread of the engine's front process (0.32), or on a few threads that
share its interpreter lock (0.25): about 27 one-megapixel images a second, whatever the GPU. Models of a
billion parameters and fewer starve on that.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from pipeline.engine.budget import Budget
from pipeline.engine.causes import root_cause
from pipeline.engine.environment import LEAN, started_with
from pipeline.engine.parcel import Parcel, open_parcel, pack_parcel, parcel_folder
from pipeline.errors import EngineError

QUEUED = 4
"""Requests on their way to each process: none waits for work, and what is copied for them stays little."""

_renderer: Any = None
_model_config: Any = None
_folder: Path | None = None


class RenderingError(Exception):
    """The request cannot be rendered, for the reason that vLLM or the processor gave."""


class RenderPool:
    """So many processes, each with a renderer of the engine's configuration.

    `in_flight_bytes` bounds the decoded pixels that are on their way to them at once, and `QUEUED` the number
    of requests; the tensors are up to four times as large, and wait in memory files until the engine has them.
    """

    def __init__(self, engine_args: dict[str, Any], workers: int, in_flight_bytes: int = 2 * 2**30) -> None:
        self._folder = parcel_folder()
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(engine_args, os.getpid(), self._folder),
        )
        with started_with(LEAN):
            for _ in range(workers):
                self._pool.submit(_ready)  # start them now, while the engine starts, not at the first request
        self._budget = Budget(in_flight_bytes)
        self._turn = asyncio.Semaphore(QUEUED * workers)

    async def render(self, prompt: dict[str, Any]) -> Any:
        """The request as vLLM's engine takes it.

        Raises:
            RenderingError: it cannot be rendered.
            EngineError: a render process died, or there is no memory for files.
        """
        loop = asyncio.get_running_loop()
        async with self._turn, self._budget.held(_pixel_bytes(prompt)):
            try:
                parcel = await asyncio.to_thread(pack_parcel, prompt, self._folder)
                rendered, refusal = await loop.run_in_executor(self._pool, _render, parcel)
            except BrokenProcessPool as error:
                raise EngineError("a render process died") from error
            except OSError as error:
                raise EngineError(
                    f"no room for requests in {self._folder.parent} ({error.strerror}): give the container "
                    "more shared memory (--shm-size), lower engine.pixels_in_flight, or set "
                    "engine.render_workers=0"
                ) from error
        if rendered is None:
            raise RenderingError(refusal)
        return open_parcel(rendered)

    def close(self) -> None:
        """Stop the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def _pixel_bytes(prompt: dict[str, Any]) -> int:
    return sum(_bytes_of(item) for items in prompt["multi_modal_data"].values() for item in items)


def _bytes_of(item: Any) -> int:
    if isinstance(item, dict):  # as `models.packing.pack` gives chunks
        item = item["image"]
    pixels = item[0] if isinstance(item, tuple) else item
    return int(pixels.nbytes) if hasattr(pixels, "nbytes") else 3 * pixels.width * pixels.height


def _start(engine_args: dict[str, Any], parent: int, folder: Path) -> None:
    global _renderer, _model_config, _folder
    threading.Thread(target=_die_with, args=(parent, folder), daemon=True).start()
    import torch
    from vllm import AsyncEngineArgs
    from vllm.renderers import renderer_from_config

    torch.set_num_threads(1)
    config = AsyncEngineArgs(**engine_args).create_engine_config()
    _renderer, _model_config, _folder = renderer_from_config(config), config.model_config, folder
    with contextlib.suppress(Exception):
        # It takes seconds, and is loaded by the first request otherwise; which then tells why it cannot be.
        _renderer.get_mm_processor().info.get_hf_processor()


def _ready() -> None:
    """Nothing to do: by then the process has its renderer."""


def _die_with(parent: int, folder: Path) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _render(prompt: Parcel) -> tuple[Parcel | None, str | None]:
    from vllm.renderers.inputs.preprocess import parse_model_prompt

    opened = open_parcel(prompt)
    try:
        (rendered,) = _renderer.render_cmpl([parse_model_prompt(_model_config, opened)])
    except Exception as error:  # noqa: BLE001 (its type may not unpickle in the engine's process)
        return None, root_cause(error)
    assert _folder is not None
    return pack_parcel(rendered, _folder), None
