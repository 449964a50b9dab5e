"""JPEG files that lack their end, accepted only on request, and only where most of the picture is there."""

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import Code, ItemError
from tests.media.made import decode, saved


def photo(width: int = 320, height: int = 240) -> Image.Image:
    """As much detail at the bottom as at the top, so that bytes are spread over the rows."""
    y, x = np.mgrid[:height, :width]
    waves = 127 + 60 * np.sin(x / 17) * np.cos(y / 13)
    noise = np.random.default_rng(0).integers(-30, 30, (height, width, 3))
    return Image.fromarray(np.clip(np.stack([waves, 255 - waves, waves], -1) + noise, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def baseline() -> bytes:
    return saved(photo(), "JPEG", quality=90)


@pytest.fixture(scope="module")
def progressive() -> bytes:
    return saved(photo(), "JPEG", quality=90, progressive=True)


def cut(data: bytes, part: float) -> bytes:
    return data[: int(len(data) * part)]


@pytest.mark.parametrize("part", [0.5, 0.95, 0.999])
def test_nothing_is_accepted_unless_asked_for(baseline: bytes, progressive: bytes, part: float) -> None:
    for data in (baseline, progressive):
        with pytest.raises(ItemError) as caught:
            decode(cut(data, part))
        assert caught.value.code is Code.DECODE_TRUNCATED


def test_what_is_there_is_shown(baseline: bytes) -> None:
    whole, found = decode(baseline), decode(cut(baseline, 0.95), recover=True)
    assert found.shape == whole.shape
    same = (found == whole).all(axis=(1, 2))
    assert same[:208].all()  # 13 of 15 rows of blocks of 16
    assert not same[239]


def test_only_the_mark_of_the_end_is_missing(baseline: bytes, progressive: bytes) -> None:
    for data in (baseline, progressive):
        assert (decode(data[:-2], recover=True) == decode(data)).all()
        assert (decode(data[:-1], recover=True) == decode(data)).all()


@pytest.mark.parametrize("part", [0.02, 0.3, 0.8, 0.85])
def test_too_little_is_refused_all_the_same(baseline: bytes, part: float) -> None:
    with pytest.raises(ItemError) as caught:
        decode(cut(baseline, part), recover=True)
    assert caught.value.code is Code.DECODE_TRUNCATED


def test_a_progressive_file_has_the_whole_picture_early(progressive: bytes) -> None:
    whole = decode(progressive).astype(int)
    coarse = decode(cut(progressive, 0.7), recover=True).astype(int)
    assert np.abs(coarse - whole).mean() < 20
    rows = np.abs(coarse - whole).mean(axis=(1, 2))
    assert rows.max() < 30  # none is grey
    with pytest.raises(ItemError):
        decode(cut(progressive, 0.1), recover=True)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF"])
def test_other_formats_without_their_end_are_refused(kind: str) -> None:
    with pytest.raises(ItemError) as caught:
        decode(cut(saved(photo(), kind), 0.97), recover=True)
    assert caught.value.code is Code.DECODE_TRUNCATED


def test_whole_files_are_the_same_either_way(baseline: bytes, progressive: bytes) -> None:
    for data in (baseline, progressive):
        assert (decode(data, recover=True) == decode(data)).all()
