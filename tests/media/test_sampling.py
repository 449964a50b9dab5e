"""Which frames are taken, worked out by hand."""

from typing import Any

import pytest

from pipeline.media.sampling import FrameSampling, frame_indices
from tests.media.clips import ALL


@pytest.mark.parametrize(
    ("total", "fps", "sampling", "expected"),
    [
        (10, 5.0, FrameSampling(num_frames=4), [0, 3, 6, 9]),
        (8, 5.0, FrameSampling(num_frames=4), [0, 2, 4, 7]),  # 0, 2.33, 4.67, 7
        (10, 5.0, FrameSampling(num_frames=1), [0]),
        (3, 5.0, FrameSampling(num_frames=8), [0, 1, 2]),
        (10, 5.0, FrameSampling(num_frames=8, max_frames=2), [0, 9]),
        (1, 5.0, FrameSampling(num_frames=8), [0]),
        (10, 5.0, FrameSampling(fps=1), [0, 5]),
        (11, 5.0, FrameSampling(fps=1), [0, 5, 10]),
        (10, 5.0, FrameSampling(fps=2), [0, 2, 5, 7]),  # every 2.5th
        (4, 5.0, FrameSampling(fps=30), [0, 1, 2, 3]),
        (100, 10.0, FrameSampling(fps=2, max_frames=20), list(range(0, 100, 5))),
        (100, 10.0, FrameSampling(fps=2, max_frames=4), [0, 33, 66, 99]),
        (10, 0.5, FrameSampling(fps=0.01), [0]),
        # 30000/1001 frames a second, two of them: 14.985 apart.
        (60, 30000 / 1001, FrameSampling(fps=2), [0, 14, 29, 44, 59]),
        # 33 / 1.1 is 29.999999999999996 in floating point.
        (60, 33.0, FrameSampling(fps=1.1), [0, 30]),
        (30, 29.97, FrameSampling(fps=29.97), list(range(30))),
    ],
)
def test_indices(total: int, fps: float, sampling: FrameSampling, expected: list[int]) -> None:
    assert frame_indices(total, fps, sampling) == expected


def test_indices_are_plain_ascending_and_in_the_clip() -> None:
    for total in (1, 2, 7, 299, 5000):
        for native in (0.1, 23.976, 30.0, 240.0):
            for wanted in (0.05, 1.0, 2.0, 24.0, 1000.0):
                found = frame_indices(total, native, FrameSampling(fps=wanted, max_frames=64))
                assert all(type(index) is int for index in found)
                assert found == sorted(set(found))
                assert found[0] == 0
                assert found[-1] < total
                assert len(found) <= 64


@pytest.mark.parametrize(
    "wrong", [{}, {"num_frames": 4, "fps": 1.0}, {"num_frames": 0}, {"fps": 0.0}, {"fps": 1.0, "max_frames": 0}]
)
def test_a_sampling_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"num_frames|fps|max_frames"):
        FrameSampling(**wrong)


@pytest.mark.parametrize(("total", "fps"), [(0, 5.0), (5, 0.0), (5, float("nan"))])
def test_a_clip_without_frames_or_time_is_refused(total: int, fps: float) -> None:
    with pytest.raises(ValueError, match="a clip of"):
        frame_indices(total, fps, ALL)
