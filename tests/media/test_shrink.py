"""Sizes worked out by hand, and what must hold for every size."""

import random

import pytest

from pipeline.media.shrink import PixelBudget, shrunk_size


@pytest.mark.parametrize(
    ("size", "budget", "expected"),
    [
        ((640, 480), PixelBudget(), (640, 480)),
        ((640, 480), PixelBudget(max_pixels=640 * 480, max_side=640), (640, 480)),
        ((100, 100), PixelBudget(max_pixels=10**6, max_side=1000, min_side=500), (100, 100)),
        ((2000, 1000), PixelBudget(max_side=500), (500, 250)),
        ((1000, 2000), PixelBudget(max_side=500), (250, 500)),
        ((2000, 1000), PixelBudget(max_pixels=500_000), (1000, 500)),
        ((2000, 1000), PixelBudget(max_pixels=500_000, max_side=800), (800, 400)),
        ((2000, 1000), PixelBudget(max_pixels=80_000, max_side=800), (400, 200)),
        # 1000/3 = 333.3 and 2000/3 = 666.7, each to the nearest.
        ((3000, 1000), PixelBudget(max_side=1000), (1000, 333)),
        ((3000, 2000), PixelBudget(max_side=1000), (1000, 667)),
        # sqrt(1000) = 31.6: 32 x 32 would be 1024.
        ((100, 100), PixelBudget(max_pixels=1000), (31, 31)),
        # The shorter side is kept at 336 whatever the others say, ...
        ((2016, 672), PixelBudget(max_side=500, min_side=336), (1008, 336)),
        ((2016, 672), PixelBudget(max_pixels=10, min_side=336), (1008, 336)),
        # ... a shorter side below it already is not touched, ...
        ((1000, 300), PixelBudget(max_side=500, min_side=336), (1000, 300)),
        # ... and where the others leave more than that, they hold.
        ((2000, 1000), PixelBudget(max_side=800, min_side=336), (800, 400)),
        ((1000, 1), PixelBudget(max_side=10), (10, 1)),
        ((10000, 1), PixelBudget(max_pixels=100), (100, 1)),
        ((1, 10000), PixelBudget(max_pixels=100), (1, 100)),
    ],
)
def test_sizes(size: tuple[int, int], budget: PixelBudget, expected: tuple[int, int]) -> None:
    assert shrunk_size(*size, budget) == expected


def test_any_size_stays_within_the_budget_and_close_to_its_largest() -> None:
    rnd = random.Random(0)
    for _ in range(3000):
        width, height = rnd.randint(1, 5000), rnd.randint(1, 5000)
        area, side = rnd.randint(1, 10**6), rnd.randint(1, 3000)
        w, h = shrunk_size(width, height, PixelBudget(max_pixels=area, max_side=side))
        assert 1 <= w <= min(width, side)
        assert 1 <= h <= min(height, side)
        assert w * h <= area
        if min(w, h) > 30:
            assert abs(w / h - width / height) / (width / height) < 0.05
            assert w in (width, side) or h in (height, side) or (w + 1.5) * (h + 1.5) > area


@pytest.mark.parametrize("bound", ["max_pixels", "max_side", "min_side"])
def test_a_bound_below_one_is_refused_by_name(bound: str) -> None:
    with pytest.raises(ValueError, match=f"{bound} is 0"):
        PixelBudget(**{bound: 0})


def test_a_picture_without_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match="0x5"):
        shrunk_size(0, 5, PixelBudget())
