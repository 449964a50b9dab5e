"""Clips made with PyAV whose frame k is known by its grey level, or whose quarters by their colours."""

import io
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from pipeline.errors import ItemError
from pipeline.media.boxes import boxes
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import FrameSampling, decode_video

RED, GREEN, BLUE, BLACK = [255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]
FPS, FRAMES, WIDTH, HEIGHT = 10, 50, 200, 120
ALL = FrameSampling(num_frames=1000)


def level(frame: int) -> int:
    return 20 + 4 * frame


def grey(frame: int) -> np.ndarray:
    return np.full((HEIGHT, WIDTH, 3), level(frame), np.uint8)


def clip(
    picture: Callable[[int], np.ndarray] = grey,
    frames: int = FRAMES,
    kind: str = "mp4",
    codec: str = "libx264",
    *,
    pixels: str = "yuv420p",
    encoder: dict[str, str] | None = None,
    times: list[int] | None = None,
    change: Callable[[av.VideoStream], None] | None = None,
    **options: str,
) -> bytes:
    """A clip of FPS frames a second, a keyframe at each 12th; `times` in hundredths of a second instead.

    `encoder` are its options besides, `options` the container's, `change` is done to the stream before.
    """
    out = io.BytesIO()
    settings = {"g": "12", "crf": "4", "qmax": "4", **(encoder or {})}
    settings = {name: value for name, value in settings.items() if value}
    with av.open(out, "w", format=kind, options=options) as container:
        stream = container.add_stream(codec, rate=Fraction(FPS), options=settings)
        stream.height, stream.width = picture(0).shape[:2]
        stream.pix_fmt = pixels
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 100)
        if change is not None:
            change(stream)
        for index in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(index), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[index], Fraction(1, 100)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out.getvalue()


def index_first(mp4: bytes) -> bytes:
    """The same MP4 as the web has it: the index before the frames, its offsets moved by its own length."""
    found = {box.kind: mp4[box.start - 8 : box.end] for box in boxes(mp4)}
    index, at = bytearray(found[b"moov"]), -1
    while (at := index.find(b"stco", at + 1)) >= 0:
        (count,) = struct.unpack_from(">I", index, at + 8)
        offsets = struct.unpack_from(f">{count}I", index, at + 12)
        struct.pack_into(f">{count}I", index, at + 12, *(offset + len(index) - 8 for offset in offsets))
    return found[b"ftyp"] + bytes(index) + found[b"mdat"]


def decode(
    data: bytes,
    sampling: FrameSampling = ALL,
    budget: PixelBudget | None = None,
    max_pixels: int = 10**7,
    **options: Any,
) -> tuple[np.ndarray, dict[str, Any]]:
    budget = budget or PixelBudget()
    return decode_video(data, sampling=sampling, budget=budget, max_pixels=max_pixels, **options)


def seen(frames: np.ndarray) -> list[int]:
    """Which frame of the clip each is, read off its grey level."""
    means = frames.reshape(len(frames), -1).mean(axis=1)
    found = np.rint((means - level(0)) / 4)
    assert np.abs(means - level(found)).max() < 1.9, means
    return found.astype(int).tolist()


def quadrants(width: int, height: int) -> np.ndarray:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    return pixels


def refusal(data: bytes, **options: Any) -> ItemError:
    with pytest.raises(ItemError) as caught:
        decode(data, **options)
    assert len(caught.value.reason) < 300
    assert caught.value.reason.isprintable()
    return caught.value
