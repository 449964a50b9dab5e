"""A budget of bytes: who fits goes, who does not waits, and nobody waits for ever."""

from __future__ import annotations

import asyncio

from pipeline.engine.budget import Budget


async def _hold(budget: Budget, size: int, log: list[str], name: str, until: asyncio.Event) -> None:
    async with budget.held(size):
        log.append(name)
        await until.wait()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_more_is_held_than_there_is_and_smaller_ones_pass() -> None:
    async def work() -> None:
        budget, log = Budget(10), []
        first, little, rest = asyncio.Event(), asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(_hold(budget, 8, log, "eight", first))]
        await _settle()
        tasks.append(asyncio.create_task(_hold(budget, 4, log, "four", rest)))
        tasks.append(asyncio.create_task(_hold(budget, 2, log, "two", little)))
        await _settle()
        assert log == ["eight", "two"]
        little.set()
        await _settle()
        assert log == ["eight", "two"]
        first.set()
        await _settle()
        assert log == ["eight", "two", "four"]
        rest.set()
        await asyncio.gather(*tasks)

    asyncio.run(work())


def test_one_larger_than_all_goes_alone() -> None:
    async def work() -> None:
        budget, log = Budget(10), []
        small, large = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(_hold(budget, 1, log, "small", small))]
        await _settle()
        tasks.append(asyncio.create_task(_hold(budget, 99, log, "large", large)))
        await _settle()
        assert log == ["small"]
        small.set()
        await _settle()
        assert log == ["small", "large"]
        tasks.append(asyncio.create_task(_hold(budget, 1, log, "next", small)))
        await _settle()
        assert log == ["small", "large"]
        large.set()
        await asyncio.gather(*tasks)
        assert log == ["small", "large", "next"]

    asyncio.run(work())


def test_what_was_held_is_free_after_a_failure() -> None:
    async def work() -> None:
        budget = Budget(10)
        for _ in range(3):
            try:
                async with budget.held(10):
                    raise KeyError
            except KeyError:
                continue
        async with budget.held(10):
            return

    asyncio.run(asyncio.wait_for(work(), 5))


def test_who_goes_away_leaves_what_it_waited_for_and_what_it_just_got() -> None:
    async def work() -> None:
        budget, log, never = Budget(10), [], asyncio.Event()
        async with budget.held(10):
            waiting, granted = (asyncio.create_task(_hold(budget, 10, log, "gone", never)) for _ in range(2))
            await _settle()
            waiting.cancel()
            await _settle()
        granted.cancel()  # what was held is its own by now, and it has not run since
        await _settle()
        assert waiting.cancelled()
        assert granted.cancelled()
        assert log == []
        async with budget.held(10):
            return

    asyncio.run(asyncio.wait_for(work(), 5))
