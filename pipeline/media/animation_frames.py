"""Animated PNG and WebP as videos, by Pillow: FFmpeg's decoder of animated WebP is not in PyAV."""

from __future__ import annotations

import io
from fractions import Fraction
from itertools import accumulate

import numpy as np
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.media.choosing import chosen_frames
from pipeline.media.clip import Clip, check_clip, check_frame
from pipeline.media.rgb import to_rgb
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.media.sniff import is_cut_short
from pipeline.media.timeline import Timeline

KINDS = {"PNG image": "PNG", "WebP image": "WEBP"}
"""What such a file looks like, and Pillow's name of it."""

# Browsers show a frame that says less than this for so long.
_SHORTEST, _USUAL = Fraction(11, 1000), Fraction(1, 10)
_TICKS = 1_000_000


def durations(data: bytes) -> list[Fraction]:
    """Return how long each frame of an animation is shown, in seconds; [] for a still picture.

    Read from the file's chunks, nothing is decoded: ANMF of WebP, fcTL of PNG.
    """
    found = _of_webp(data) if data.startswith(b"RIFF") else _of_png(data)
    return [seconds if seconds >= _SHORTEST else _USUAL for seconds in found]


def _of_webp(data: bytes) -> list[Fraction]:
    found, at = [], 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"ANMF":
            found.append(Fraction(int.from_bytes(data[at + 20 : at + 23], "little"), 1000))
        at += 8 + size + size % 2
    return found


def _of_png(data: bytes) -> list[Fraction]:
    found, at = [], 8
    while at + 8 <= len(data):
        if data[at + 4 : at + 8] == b"fcTL":
            shown, of = (int.from_bytes(data[at + k : at + k + 2], "big") for k in (28, 30))
            found.append(Fraction(shown, of or 100))
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return found


def decode_animation(
    data: bytes, name: str, sampling: FrameSampling, budget: PixelBudget, max_pixels: int
) -> Clip:
    """Decode the sampled frames of an animated PNG or WebP, transparency laid over white.

    Frames build on each other, so all before the last one wanted are decoded.
    Raises ItemError: NOT_MEDIA (a still picture), TOO_LARGE, CLIP_OUTSIDE, DECODE_TRUNCATED or DECODE_CORRUPT.
    """
    seconds = durations(data)
    if not seconds:
        raise ItemError(Code.NOT_MEDIA, f"expected a video, but this is a still {name}: give it as an image")
    timeline = _timeline(seconds)
    chosen = chosen_frames(timeline, sampling)
    try:
        with Image.open(io.BytesIO(data), formats=[KINDS[name]]) as image:
            return Clip.on(timeline, _frames(image, chosen, budget, max_pixels), chosen, "pillow")
    except (ItemError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ItemError(Code.TOO_LARGE, f"a frame is too large: {error}") from error
    except Exception as error:  # Pillow's plugins let about ten exception types out on damaged files
        why = "".join(c if c.isprintable() else "?" for c in str(error))[:120]
        if is_cut_short(data):
            raise ItemError(
                Code.DECODE_TRUNCATED, f"the animated {name} ends too early: fetch it again"
            ) from error
        raise ItemError(Code.DECODE_CORRUPT, f"the animated {name} is damaged ({why}): replace it") from error


def _timeline(seconds: list[Fraction]) -> Timeline:
    stamps = [round(at * _TICKS) for at in accumulate(seconds[:-1], initial=Fraction(0))]
    fps = float(len(seconds) / sum(seconds))
    return Timeline([(0, 0)], stamps, Fraction(1, _TICKS), fps, False, [0])


def _frames(
    image: Image.Image, chosen: list[int], budget: PixelBudget, max_pixels: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    width, height = image.size
    check_frame(width, height, max_pixels)
    target = shrunk_size(width, height, budget)
    check_clip(len(chosen), *target)
    cover = 1 if getattr(image, "default_image", False) else 0
    frames = np.empty((len(chosen), target[1], target[0], 3), np.uint8)
    for row, index in enumerate(chosen):
        image.seek(cover + index)
        image.load()
        rgb = to_rgb(image, "")
        frames[row] = np.asarray(rgb if rgb.size == target else rgb.resize(target, Image.Resampling.LANCZOS))
    return frames
