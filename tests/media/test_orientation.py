"""How a video frame is turned, mirrored and stretched, for each way that a container can say it."""

import struct
from fractions import Fraction

import av
import numpy as np
import pytest

from pipeline.media.shrink import PixelBudget
from tests.media.clips import BLACK, BLUE, GREEN, RED, clip, decode, quadrants

# The matrix of the track header, and how RED GREEN / BLUE BLACK is to be shown under it. ISO/IEC 14496-12,
# 6.2.2: (x, y) goes to (ax + cy, bx + dy). 0 1 -1 0 is what a phone held upright writes: clockwise by 90.
MATRICES = {
    (1, 0, 0, 1): (RED, GREEN, BLUE, BLACK),
    (0, 1, -1, 0): (BLUE, RED, BLACK, GREEN),
    (-1, 0, 0, -1): (BLACK, BLUE, GREEN, RED),
    (0, -1, 1, 0): (GREEN, BLACK, RED, BLUE),
    (-1, 0, 0, 1): (GREEN, RED, BLACK, BLUE),  # x to -x: mirrored left to right
    (1, 0, 0, -1): (BLUE, BLACK, RED, GREEN),  # y to -y: upside down, mirrored
    (0, 1, 1, 0): (RED, BLUE, GREEN, BLACK),  # x and y change places
    (0, -1, -1, 0): (BLACK, GREEN, BLUE, RED),  # x to -y, y to -x
}


def turned(data: bytes, a: int, b: int, c: int, d: int) -> bytes:
    upright = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    at = data.index(upright, data.index(b"tkhd"))
    matrix = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    return data[:at] + matrix + data[at + len(matrix) :]


def assert_quarters(frames: np.ndarray, size: tuple[int, int], colours: tuple[list[int], ...]) -> None:
    width, height = size
    assert frames.shape[1:] == (height, width, 3)
    for frame in frames.astype(int):
        parts = [frame[: height // 2, : width // 2], frame[: height // 2, width // 2 :]]
        parts += [frame[height // 2 :, : width // 2], frame[height // 2 :, width // 2 :]]
        for part, colour in zip(parts, colours, strict=True):
            assert np.abs(part.reshape(-1, 3).mean(axis=0) - colour).max() < 16


@pytest.mark.parametrize("size", [(200, 120), (120, 96)])
@pytest.mark.parametrize("matrix", list(MATRICES))
def test_turned_and_mirrored(matrix: tuple[int, int, int, int], size: tuple[int, int]) -> None:
    width, height = size
    data = turned(clip(lambda _: quadrants(width, height), frames=3), *matrix)
    w, h = (height, width) if matrix[0] == 0 else (width, height)
    assert_quarters(decode(data)[0], (w, h), MATRICES[matrix])
    small = decode(data, budget=PixelBudget(max_pixels=w * h // 4))[0]
    assert_quarters(small, (w // 2, h // 2), MATRICES[matrix])


@pytest.mark.parametrize("kind", ["mp4", "matroska"])
@pytest.mark.parametrize(
    ("aspect", "size"),
    [(Fraction(2), (400, 120)), (Fraction(1, 2), (200, 240)), (Fraction(16, 15), (213, 120))],
)
def test_pixels_that_are_not_square(kind: str, aspect: Fraction, size: tuple[int, int]) -> None:
    def stretch(stream: av.VideoStream) -> None:
        stream.codec_context.sample_aspect_ratio = aspect

    data = clip(lambda _: quadrants(200, 120), frames=2, kind=kind, change=stretch)
    assert_quarters(decode(data)[0], size, (RED, GREEN, BLUE, BLACK))


def test_not_square_and_turned() -> None:
    def stretch(stream: av.VideoStream) -> None:
        stream.codec_context.sample_aspect_ratio = Fraction(2)

    data = turned(clip(lambda _: quadrants(100, 120), frames=2, change=stretch), 0, 1, -1, 0)
    assert_quarters(decode(data)[0], (120, 200), (BLUE, RED, BLACK, GREEN))


def test_a_stretch_beyond_reason_is_taken_for_damage() -> None:
    def stretch(stream: av.VideoStream) -> None:
        stream.codec_context.sample_aspect_ratio = Fraction(200, 1)

    assert decode(clip(lambda _: quadrants(100, 120), frames=2, change=stretch))[0].shape[1:3] == (120, 100)


def test_odd_sizes() -> None:
    for width, height in [(201, 121), (17, 33), (1, 1), (3, 2)]:
        data = clip(lambda _, w=width, h=height: quadrants(w, h), 2, "matroska", "ffv1", pixels="yuv444p")
        frames = decode(data)[0]
        assert frames.shape == (2, height, width, 3)
        if width > 9:
            assert np.abs(frames[0, height // 4, width // 4].astype(int) - RED).max() < 8
            assert np.abs(frames[0, height // 4, -1].astype(int) - GREEN).max() < 8
            assert np.abs(frames[0, -1, width // 4].astype(int) - BLUE).max() < 8


def test_a_change_of_size_on_the_way() -> None:
    parts = [
        clip(lambda _, size=size: quadrants(*size), 12, "mpeg2video", "mpeg2video", encoder={"crf": ""})
        for size in ((208, 112), (96, 160))
    ]
    frames, metadata = decode(b"".join(parts))
    assert metadata["total_num_frames"] == 24
    assert_quarters(frames, (208, 112), (RED, GREEN, BLUE, BLACK))
