"""Renders requests (tokens, and the Hugging Face processor's tensors) in processes beside the engine.

vLLM renders multimodal requests on one thread of the engine's front process (0.32), or on a few threads that
share its interpreter lock (0.25): about 27 one-megapixel images a second, whatever the GPU. Models of a
billion parameters and fewer starve on that.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from pipeline.engine.budget import Budget
from pipeline.engine.environment import LEAN, started_with
from pipeline.engine.parcel import allow_many_parcels, open_parcel, pack_parcel
from pipeline.engine.parcel_folder import ParcelFolder
from pipeline.engine.render_processes import load_and_fork
from pipeline.errors import EngineError

QUEUED = 4
"""Requests on their way to each process: none waits for work, and what is copied for them stays little."""


class RenderingError(Exception):
    """The request cannot be rendered, for the reason that vLLM or the processor gave."""


class RenderPool:
    """So many processes, each with a renderer of the engine's configuration.

    `in_flight_bytes` bounds the decoded pixels that are on their way to them at once, and `QUEUED` the
    requests for each; the tensors are up to four times as large, and wait in memory files until vLLM has them:
    with `by_file` its core (`engine.handover`), else its front.
    """

    def __init__(
        self,
        engine_args: dict[str, Any],
        workers: int,
        by_file: bool = False,
        in_flight_bytes: int = 2 * 2**30,
    ) -> None:
        allow_many_parcels()
        self._by_file = by_file
        self._parcels = ParcelFolder()
        self._folder = self._parcels.path
        self._budget = Budget(in_flight_bytes)
        self._threads = ThreadPoolExecutor(QUEUED * workers, thread_name_prefix="render")
        context = multiprocessing.get_context("spawn")
        self._control, control = context.Pipe()
        pairs = [context.Pipe() for _ in range(workers)]
        ends = [theirs for _, theirs in pairs]
        with started_with(LEAN):  # at once, while the engine starts, not at the first request
            context.Process(
                target=load_and_fork, args=(engine_args, control, ends, self._folder), daemon=True
            ).start()
        for end in (control, *ends):
            end.close()
        self._links: SimpleQueue[Any] = SimpleQueue()
        for ours, _ in pairs:
            self._links.put(ours)

    async def render(self, prompt: dict[str, Any]) -> Any:
        """The request as vLLM's engine takes it.

        Raises:
            RenderingError: it cannot be rendered.
            EngineError: a render process died, or there is no memory for files.
        """
        loop = asyncio.get_running_loop()
        async with self._budget.held(_pixel_bytes(prompt)):
            try:
                rendered, refusal = await loop.run_in_executor(self._threads, self._ask, prompt)
            except (EOFError, ConnectionError, FileNotFoundError) as error:
                raise EngineError("a render process died") from error
            except OSError as error:
                raise EngineError(
                    f"no room for requests in {self._folder.parent} ({error.strerror}): give the container "
                    "more shared memory (--shm-size), or lower engine.render_workers (0 needs none)"
                ) from error
        if refusal is not None:
            raise RenderingError(refusal)
        return rendered

    def _ask(self, prompt: dict[str, Any]) -> tuple[Any, str | None]:
        parcel = pack_parcel(prompt, self._folder)
        link = self._links.get()
        try:
            link.send(parcel)
            reply = link.recv()
        finally:
            self._links.put(link)
        if isinstance(reply, OSError):
            raise reply
        rendered, refusal = reply
        return None if rendered is None else open_parcel(rendered, self._by_file), refusal

    def close(self) -> None:
        """Stop the processes."""
        self._control.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._parcels.remove()


def _pixel_bytes(prompt: dict[str, Any]) -> int:
    return sum(_bytes_of(item) for items in prompt["multi_modal_data"].values() for item in items)


def _bytes_of(item: Any) -> int:
    if isinstance(item, dict):  # as `models.packing.pack` gives chunks
        item = item["image"]
    pixels = item[0] if isinstance(item, tuple) else item
    return int(pixels.nbytes) if hasattr(pixels, "nbytes") else 3 * pixels.width * pixels.height
