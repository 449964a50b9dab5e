"""How many suspects to try together after an engine died of one of them, or of none."""

from __future__ import annotations

_LARGEST = 256


def group_size(untried: int, tried: int, guilty: int, answer_seconds: float, start_seconds: float) -> int:
    """The size of group that costs least time for each suspect.

    A group is sent at once. If the engine survives, all of it is cleared in the time of one answer; if not,
    the engine starts again and the members are tried alone, so that a group of one is never tried twice.
    How many of the suspects are guilty is taken from those tried so far; until two were found, it is as
    likely that there is one among all of them as that there is none.

    Args:
        untried, tried, guilty: suspects still to be tried; tried since the death; of these, those found guilty.
        answer_seconds: to answer one request alone.
        start_seconds: to start an engine.
    """
    likely = guilty / tried if guilty > 1 else 1 / (2 * max(1, untried))

    def cost(size: int) -> float:
        if size == 1:
            return answer_seconds
        death = 1 - (1 - likely) ** size
        return answer_seconds / size + death * (start_seconds / size + answer_seconds)

    sizes = [size for size in (2**power for power in range(9)) if size <= min(untried, _LARGEST)]
    return min(sizes, key=cost, default=1)
