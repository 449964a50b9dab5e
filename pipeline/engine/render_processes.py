"""The processes that render requests beside an engine: one that loads what it takes, and its forks.

vLLM, the model's configuration and its Hugging Face processor take some 15 s of a core and 1 GiB to load. A
fork has them at once, and shares that memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pipeline.engine.causes import root_cause
from pipeline.engine.parcel import Parcel, open_parcel, pack_parcel

Reply = tuple[Parcel | None, str | None] | OSError
"""What was rendered, or why it cannot be; or what kept it from being handed over."""


def load_and_fork(
    engine_args: dict[str, Any], control: Connection, links: Sequence[Connection], folder: Path
) -> None:
    """The whole life of the first process: load, fork a process for each link, end them when `control` ends.

    `control` and the links end with the process at their other end, however it ends; `folder`, where the
    parcels are, goes with them. Nothing here may start a thread before the forks.
    """
    signal.signal(signal.SIGTERM, _leave)  # from multiprocessing, when the engine's process ends by itself
    try:
        render = _renderer(engine_args)
        gc.freeze()  # a collection would write to the memory that is shared
        fork_and_guard(lambda parcel: _reply(render, parcel, folder), control, links)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fork_and_guard(answer: Callable[[Parcel], Reply], control: Connection, links: Sequence[Connection]) -> None:
    """Fork a process for each link, which answers what comes through it, and kill them when `control` ends."""
    forks = [_fork(answer, link, [control, *links]) for link in links]
    for link in links:
        link.close()
    try:
        with contextlib.suppress(EOFError, OSError):
            control.recv()
    finally:
        for fork in forks:
            os.kill(fork, signal.SIGKILL)
            os.waitpid(fork, 0)


def _leave(*_: object) -> None:
    raise SystemExit


def _fork(answer: Callable[[Parcel], Reply], link: Connection, inherited: Sequence[Connection]) -> int:
    if fork := os.fork():
        return fork
    status = 1
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        for other in inherited:
            if other is not link:
                other.close()  # else it would stay open when the process that it belongs to is dead
        while True:
            link.send(answer(link.recv()))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        status = 0
    except Exception:  # noqa: BLE001 (told; then the link's end tells of it)
        traceback.print_exc()
    finally:
        os._exit(status)


def _renderer(engine_args: dict[str, Any]) -> Callable[[Any], Any]:
    import torch
    from vllm import AsyncEngineArgs
    from vllm.renderers import renderer_from_config
    from vllm.renderers.inputs.preprocess import parse_model_prompt

    torch.set_num_threads(1)
    config = AsyncEngineArgs(**engine_args).create_engine_config()
    renderer, model_config = renderer_from_config(config), config.model_config
    with contextlib.suppress(Exception):
        # Loaded by the first request otherwise; which then tells why it cannot be.
        renderer.get_mm_processor().info.get_hf_processor()

    def render(prompt: Any) -> Any:
        (rendered,) = renderer.render_cmpl([parse_model_prompt(model_config, prompt)])
        return rendered

    return render


def _reply(render: Callable[[Any], Any], prompt: Parcel, folder: Path) -> Reply:
    opened = open_parcel(prompt)
    try:
        rendered = render(opened)
    except Exception as error:  # noqa: BLE001 (its type may not unpickle in the engine's process)
        return None, root_cause(error)
    try:
        return pack_parcel(rendered, folder), None
    except OSError as error:
        return error
