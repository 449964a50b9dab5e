"""Which frames of a timeline are taken: even and uneven, of a part, keyframes only."""

from fractions import Fraction

import pytest

from pipeline.errors import Code, ItemError
from pipeline.media.choosing import chosen_frames
from pipeline.media.sampling import FrameSampling
from pipeline.media.timeline import Timeline


def timeline(stamps: list[int], keys: list[int], fps: float) -> Timeline:
    """Stamps in hundredths of a second."""
    return Timeline([(key, 0) for key in keys], stamps, Fraction(1, 100), fps, False, keys)


EVEN = timeline(list(range(0, 1000, 10)), [0, 250, 500, 750], 10.0)
UNEVEN = timeline([0, 10, 100, 300, 310, 320, 900], [0, 300], 0.8)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({"num_frames": 3}, [0, 49, 99]),
        ({"num_frames": 3, "start": 2.0, "end": 4.0}, [20, 29, 39]),
        ({"num_frames": 3, "start": 2.05, "end": 4.05}, [20, 30, 40]),
        ({"num_frames": 2, "start": 9.95}, [99]),
        ({"num_frames": 2, "end": 0.01}, [0]),
        ({"num_frames": 2, "start": 5.0, "end": 1000.0}, [50, 99]),
        ({"fps": 1.0, "start": 7.0}, [70, 80, 90]),
        ({"fps": 1.0, "start": 7.0, "max_frames": 2}, [70, 99]),
        ({"keyframes": True}, [0, 25, 50, 75]),
        ({"keyframes": True, "max_frames": 2}, [0, 75]),
        ({"keyframes": True, "start": 2.5, "end": 7.5}, [25, 50]),
        ({"keyframes": True, "start": 2.6, "end": 4.0}, [26]),
    ],
)
def test_frames_that_come_evenly(sampling: dict[str, float], expected: list[int]) -> None:
    assert chosen_frames(EVEN, FrameSampling(**sampling)) == expected


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({"fps": 1.0}, [0, 2, 3, 5, 6]),
        ({"fps": 1.0, "start": 1.0, "end": 4.0}, [2, 3]),
        ({"fps": 10.0, "start": 3.0, "end": 3.2}, [3, 4]),
        ({"num_frames": 2, "start": 2.0, "end": 3.15}, [2, 4]),
        ({"keyframes": True, "start": 1.0}, [3]),
    ],
)
def test_frames_that_come_unevenly(sampling: dict[str, float], expected: list[int]) -> None:
    assert chosen_frames(UNEVEN, FrameSampling(**sampling)) == expected


def test_a_part_beyond_the_end_has_its_code() -> None:
    with pytest.raises(ItemError) as caught:
        chosen_frames(EVEN, FrameSampling(num_frames=2, start=10.0))
    assert caught.value.code is Code.CLIP_OUTSIDE
    assert "10.00 s" in caught.value.reason
    assert "media.video.start" in caught.value.reason


@pytest.mark.parametrize(
    "sampling",
    [
        {"keyframes": True, "num_frames": 2},
        {"num_frames": 2, "start": -1.0},
        {"num_frames": 2, "start": 2.0, "end": 2.0},
        {"num_frames": 2, "end": float("nan")},
    ],
)
def test_nonsense_is_refused(sampling: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give"):
        FrameSampling(**sampling)
