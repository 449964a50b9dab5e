"""Deaths of real engines: processes that are killed, or stopped so that they hang."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import psutil
import pytest

from pipeline.engine.base import Answer, Engine
from pipeline.engine.supervisor import EngineSupervisor
from pipeline.engine.vllm import VllmEngine
from tests.engine.conftest import ARGUMENTS, Demo, Hosted


def processes(name: str) -> list[psutil.Process]:
    """The living ones below this one whose title has the name."""
    children = psutil.Process().children(recursive=True)
    living = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in living if name in " ".join(child.cmdline())]


async def answers_though(
    supervisor: EngineSupervisor, demo: Demo, count: int, harm: Callable[[], None]
) -> list[tuple[Answer, int]]:
    """The answers to the demo's first rows, where harm is done after the first of them."""
    tasks = [asyncio.create_task(supervisor.generate(request)) for request in demo.requests(demo.rows(count))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    harm()
    return await asyncio.gather(*tasks)


def check(results: list[tuple[Answer, int]], demo: Demo) -> None:
    assert [answer.text for answer, _ in results] == [row["answer"] for row in demo.rows(len(results))]
    assert {attempts for _, attempts in results} == {1, 2}


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_core_that_is_killed_or_hangs_with_twenty_requests_in_flight(
    sent: signal.Signals, hosted: Hosted, demo: Demo
) -> None:
    engines = iter([lambda: hosted.engine, hosted.replace])

    def start() -> Engine:
        return next(engines)()

    supervisor = EngineSupervisor(start, 1, hosted.figures)
    (core,) = processes("EngineCore")

    def harm() -> None:
        core.send_signal(sent)
        supervisor._life._hang_seconds = 1.0  # of this engine only: a slow machine is no hang

    check(hosted.run(answers_though(supervisor, demo, 20, harm)), demo)
    assert supervisor.restarts == 1
    (new,) = processes("EngineCore")
    assert new.pid != core.pid


@pytest.mark.usefixtures("few_threads")
def test_a_worker_of_two_that_is_killed(demo: Demo) -> None:
    arguments = {**ARGUMENTS, "tensor_parallel_size": 2, "distributed_executor_backend": "mp"}

    async def work() -> None:
        before = set(processes("VLLM::Worker"))
        supervisor = EngineSupervisor(lambda: VllmEngine(arguments), 1)
        first, second = set(processes("VLLM::Worker")) - before
        check(await answers_though(supervisor, demo, 8, second.kill), demo)
        assert supervisor.restarts == 1
        assert not first.is_running(), "the other worker of the dead engine is gone too"
        supervisor.close()
        await asyncio.sleep(0.1)

    asyncio.run(work())
