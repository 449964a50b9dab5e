"""Animated PNG and WebP in the role of a video: the right frames at their own times."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import Code
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from tests.media.clips import decode, level, refusal, seen

KINDS: dict[str, dict[str, Any]] = {"PNG": {}, "WEBP": {"lossless": True}, "GIF": {}}


def animation(kind: str, milliseconds: list[int], **options: Any) -> bytes:
    frames = [Image.new("RGB", (60, 40), (level(k),) * 3) for k in range(len(milliseconds))]
    out = io.BytesIO()
    options = {**KINDS[kind], **options}
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=milliseconds, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", list(KINDS))
def test_frames_in_turn(kind: str) -> None:
    frames, metadata = decode(animation(kind, [100] * 12))
    assert seen(frames) == metadata["frames_indices"] == list(range(12))
    assert (metadata["fps"], metadata["total_num_frames"]) == (pytest.approx(10), 12)
    assert metadata["duration"] == pytest.approx(1.2)
    assert metadata["do_sample_frames"] is False
    frames, metadata = decode(animation(kind, [100] * 12), FrameSampling(num_frames=3, start=0.4, end=1.0))
    assert seen(frames) == metadata["frames_indices"] == [4, 6, 9]


@pytest.mark.parametrize("kind", list(KINDS))
def test_uneven_frames_have_their_true_times(kind: str) -> None:
    frames, metadata = decode(animation(kind, [200, 500, 100, 1000, 200]))
    assert seen(frames) == [0, 1, 2, 3, 4]
    times = [index / metadata["fps"] for index in metadata["frames_indices"]]
    assert times == pytest.approx([0, 0.2, 0.7, 0.8, 1.8], abs=0.01)
    assert seen(decode(animation(kind, [200, 500, 100, 1000, 200]), FrameSampling(fps=2))[0]) == [0, 1, 3]


def test_frames_that_say_no_time_are_shown_as_browsers_do() -> None:
    assert decode(animation("WEBP", [0] * 5))[1]["fps"] == pytest.approx(10)


def test_the_cover_of_an_apng_is_no_frame() -> None:
    frames = [Image.new("RGB", (60, 40), (level(k),) * 3) for k in (30, 0, 1, 2)]
    out = io.BytesIO()
    frames[0].save(out, "PNG", save_all=True, default_image=True, append_images=frames[1:], duration=100)
    assert seen(decode(out.getvalue())[0]) == [0, 1, 2]


def test_hidden_colours_stay_hidden_and_frames_shrink() -> None:
    frames = [Image.new("RGBA", (60, 40), (255, 0, 0, 0)), Image.new("RGBA", (60, 40), (0, 0, 255, 255))]
    for kind in ("PNG", "WEBP"):
        out = io.BytesIO()
        frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=100, disposal=1, exact=True)
        pixels, _ = decode(out.getvalue(), budget=PixelBudget(max_pixels=600))
        assert pixels.shape == (2, 20, 30, 3)
        assert pixels[0].min() == 255
        assert np.abs(pixels[1].astype(int) - (0, 0, 255)).max() < 3


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_what_is_not_to_be_decoded_has_its_code(kind: str) -> None:
    still = io.BytesIO()
    Image.new("RGB", (60, 40)).save(still, kind)
    error = refusal(still.getvalue())
    assert error.code is Code.NOT_MEDIA
    assert "still" in error.reason
    assert refusal(animation(kind, [100] * 3), max_pixels=1000).code is Code.TOO_LARGE
    whole = animation(kind, [100] * 40)
    assert refusal(whole[: len(whole) // 2]).code is Code.DECODE_TRUNCATED
    error = refusal(whole, sampling=FrameSampling(num_frames=2, start=9))
    assert error.code is Code.CLIP_OUTSIDE
