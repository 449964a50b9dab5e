"""The sizes that training samples have: whole numbers of visual tokens, 28 x 28 pixels each."""

import random
from dataclasses import dataclass

PATCH = 14  # pixels; a visual token is 2 x 2 patches
TOKEN = 2 * PATCH


@dataclass(frozen=True)
class Grid:
    """The size of a sample: its frames (1: a picture), and its rows and columns of visual tokens."""

    frames: int
    rows: int
    columns: int

    @property
    def steps(self) -> int:
        """Points in time: the model looks at two frames at once."""
        return max(1, self.frames // 2)

    @property
    def patches(self) -> int:
        """Patches that the vision tower sees."""
        return self.steps * self.rows * self.columns * 4

    @property
    def height(self) -> int:
        """Pixels."""
        return TOKEN * self.rows

    @property
    def width(self) -> int:
        """Pixels."""
        return TOKEN * self.columns

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the sample's pixels: frames, height, width, channels."""
        return self.frames, self.height, self.width, 3

    @property
    def bytes(self) -> int:
        """Of the sample's pixels, one a channel."""
        return self.frames * self.height * self.width * 3


_SIDES = (3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
_LARGE = ((16, 12), (12, 16), (16, 16), (14, 14))
_FLAT = ((2, 6), (2, 8), (2, 12), (2, 16))
PICTURE_GRIDS = tuple(
    Grid(1, rows, columns)
    for rows, columns in (
        *((rows, columns) for rows in _SIDES for columns in _SIDES if rows * columns <= 140),
        *_LARGE,
        *_FLAT,
    )
)
VIDEO_GRIDS = tuple(
    Grid(frames, rows, columns) for frames in (4, 6, 8) for rows in (3, 4, 5, 6) for columns in (3, 4, 5, 6)
)


def _weigh(grid: Grid) -> float:
    """Small pictures more often, and wide ones, which hold longer lines."""
    weight: float = (grid.rows * grid.columns) ** -0.45
    return weight * 1.25 if grid.columns > grid.rows else weight


_WEIGHTS = tuple(_weigh(grid) for grid in PICTURE_GRIDS)


def pick_grid(rng: random.Random, video_share: float) -> Grid:
    """The size of the next samples."""
    if rng.random() < video_share:
        return rng.choice(VIDEO_GRIDS)
    return rng.choices(PICTURE_GRIDS, _WEIGHTS)[0]
