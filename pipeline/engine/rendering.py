"""Renders requests (tokens, and the Hugging Face processor's tensors) in processes beside the engine.

vLLM renders multimodal requests on one thread of the engine's front process (0.32), or on a few threads that
share its interpreter lock (0.25): about 27 one-megapixel images a second, whatever the GPU. Models of a
billion parameters and fewer starve on that.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pipeline.engine.budget import Budget
from pipeline.errors import EngineError

_renderer: Any = None
_model_config: Any = None


class RenderingError(Exception):
    """The request cannot be rendered, for the reason that vLLM or the processor gave."""


class RenderPool:
    """So many processes, each with a renderer of the engine's configuration.

    `in_flight_bytes` bounds the decoded pixels that are being rendered at once; the tensors are about four
    times as large, and wait in shared memory until the engine takes them.
    """

    def __init__(self, engine_args: dict[str, Any], workers: int, in_flight_bytes: int = 2 * 2**30) -> None:
        import torch.multiprocessing

        # An engine keeps hundreds of rendered requests: one open file for each tensor would be too many.
        torch.multiprocessing.set_sharing_strategy("file_system")
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=torch.multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(engine_args, os.getpid()),
        )
        for _ in range(workers):
            self._pool.submit(_ready)  # start them now, while the engine starts, not at the first request
        self._budget = Budget(in_flight_bytes)

    async def render(self, prompt: dict[str, Any]) -> Any:
        """The request as vLLM's engine takes it.

        Raises:
            RenderingError: it cannot be rendered.
            EngineError: a render process died.
        """
        loop = asyncio.get_running_loop()
        async with self._budget.held(_pixel_bytes(prompt)):
            try:
                rendered, refusal = await loop.run_in_executor(self._pool, _render, prompt)
            except BrokenProcessPool as error:
                raise EngineError("a render process died") from error
        if refusal is not None:
            raise RenderingError(refusal)
        return rendered

    def close(self) -> None:
        """Stop the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _pixel_bytes(prompt: dict[str, Any]) -> int:
    total = 0
    for items in prompt["multi_modal_data"].values():
        for item in items:
            pixels = item[0] if isinstance(item, tuple) else item
            total += pixels.nbytes if hasattr(pixels, "nbytes") else 3 * pixels.width * pixels.height
    return total


def _start(engine_args: dict[str, Any], parent: int) -> None:
    global _renderer, _model_config
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    import torch
    from vllm import AsyncEngineArgs
    from vllm.renderers import renderer_from_config

    torch.set_num_threads(1)
    config = AsyncEngineArgs(**engine_args).create_engine_config()
    _renderer, _model_config = renderer_from_config(config), config.model_config


def _ready() -> None:
    """Nothing to do: by then the process has its renderer."""


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _render(prompt: dict[str, Any]) -> tuple[Any, str | None]:
    from vllm.renderers.inputs.preprocess import parse_model_prompt

    try:
        (rendered,) = _renderer.render_cmpl([parse_model_prompt(_model_config, prompt)])
    except Exception as error:  # noqa: BLE001 (its type may not unpickle in the engine's process)
        return None, str(error) or f"{type(error).__name__}: {error.__cause__ or ''}"
    return rendered, None
