"""Clips that are cut, overwritten or hostile: refused with their code, or what is whole of them on request."""

import io
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from pipeline.errors import Code, ItemError
from pipeline.media.boxes import boxes
from pipeline.media.isolated import IsolatedDecoder, Limits
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import decode_video
from tests.media.clips import clip, decode, index_first, level, refusal, seen

SEGFAULT = Path(__file__).parent / "data" / "decord_segfault.mp4"
FRAMES = 36


def rough(k: int) -> np.ndarray:
    """Grey with noise: each frame has its bytes, and its mean is level(k)."""
    half = np.random.default_rng(k).integers(-20, 21, (60, 200, 1))
    return (np.concatenate([half, -half]) + level(k)).repeat(3, axis=2).astype(np.uint8)


@pytest.fixture(scope="module")
def mp4() -> bytes:
    """Keyframes at 0, 12 and 24; the index comes first, as on the web."""
    return index_first(clip(rough, FRAMES))


def overwritten(data: bytes, start: float, stop: float) -> bytes:
    """The same with noise over a part of what is between its first and its last keyframe."""
    (media,) = (box for box in boxes(data) if box.kind == b"mdat")
    first, last = (int(media.start + part * (len(data) - media.start)) for part in (start, stop))
    return data[:first] + np.random.default_rng(5).bytes(last - first) + data[last:]


def test_frames_are_told_apart_by_their_means(mp4: bytes) -> None:
    assert seen(decode(mp4)[0]) == list(range(FRAMES))


def test_damage_in_a_sampled_frame_is_refused(mp4: bytes) -> None:
    error = refusal(overwritten(mp4, 0.45, 0.55))
    assert error.code is Code.DECODE_CORRUPT
    assert f"of {FRAMES} frames are whole" in error.reason


def test_damage_elsewhere_is_not_noticed(mp4: bytes) -> None:
    data = overwritten(mp4, 0.45, 0.55)
    frames, metadata = decode(data, FrameSampling(num_frames=2))
    assert seen(frames) == metadata["frames_indices"] == [0, 35]


def test_what_is_whole_is_given_on_request(mp4: bytes) -> None:
    frames, metadata = decode(overwritten(mp4, 0.45, 0.5), recover=True)
    indices = metadata["frames_indices"]
    assert len(frames) == len(indices)
    assert FRAMES - 12 <= len(indices) <= FRAMES  # the damage is in one of three groups of pictures
    assert set(range(12)) <= set(indices)
    assert set(range(24, FRAMES)) <= set(indices)
    outside = [k for k, index in enumerate(indices) if index < 12 or index >= 24]
    assert seen(frames[outside]) == [indices[k] for k in outside]
    assert metadata["total_num_frames"] == FRAMES


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts", "flv", "avi"])
@pytest.mark.parametrize("part", [0.35, 0.7, 0.97])
def test_a_clip_without_its_end(kind: str, part: float) -> None:
    data = clip(rough, FRAMES, kind)
    data = index_first(data) if kind == "mp4" else data
    short = data[: int(len(data) * part)]
    if kind in {"mp4", "matroska", "avi"}:  # these say how long they are; the others are whole as they are
        assert refusal(short).code is Code.DECODE_TRUNCATED
    frames, metadata = decode(short, recover=True)
    found = len(frames)
    assert FRAMES * (part - 0.15) < found <= FRAMES * part + 1
    assert seen(frames) == list(range(found)) == metadata["frames_indices"]


def test_a_clip_whose_index_is_lost_is_refused_either_way(mp4: bytes) -> None:
    found = {box.kind: mp4[box.start - 8 : box.end] for box in boxes(mp4)}
    for recover in (False, True):
        assert refusal(found[b"ftyp"] + found[b"mdat"], recover=recover).code is Code.DECODE_TRUNCATED


def test_less_than_half_is_refused_either_way(mp4: bytes) -> None:
    error = refusal(overwritten(mp4, 0.05, 0.9), recover=True)
    assert error.code is Code.DECODE_CORRUPT


def test_a_stream_that_its_decoder_refuses_as_a_whole() -> None:
    data = clip(frames=3, kind="matroska", codec="ffv1")
    with av.open(io.BytesIO(data)) as container:
        header = container.streams.video[0].codec_context.extradata
    assert header
    for recover in (False, True):
        error = refusal(data.replace(header, b"\xff" * len(header)), recover=recover)
        assert error.code is Code.DECODE_CORRUPT


@pytest.mark.parametrize(
    ("whose", "kind"),
    [("file", kind) for kind in ("mp4", "matroska", "avi", "flv")]
    + [("stream", kind) for kind in ("matroska", "avi")],
)
def test_a_title_that_is_not_utf_8_is_no_damage(whose: str, kind: str) -> None:
    def titled(stream: av.VideoStream) -> None:
        (stream.container if whose == "file" else stream).metadata["title"] = "a summer's day in Orl@ans"

    data = clip(frames=3, kind=kind, change=titled)
    assert b"Orl@ans" in data
    assert seen(decode(data.replace(b"Orl@ans", "Orl\xe9ans".encode("latin-1")))[0]) == [0, 1, 2]


def test_damaged_bytes_never_raise_anything_else() -> None:
    rnd = np.random.default_rng(2)
    files = [
        clip(lambda k: rough(k)[:32, :64], 12, kind)
        for kind in ("mp4", "matroska", "mpegts", "avi", "flv", "mpeg")
    ]
    outcomes = {"decoded": 0, "refused": 0}
    for turn in range(180):
        data = bytearray(files[turn % len(files)])
        for at in rnd.integers(0, len(data), 1 + turn % 9):
            data[at] = rnd.integers(0, 256)
        data = data[: rnd.integers(1, len(data))] if turn % 4 == 0 else data
        budget, sampling = PixelBudget(max_side=16), FrameSampling(num_frames=3)
        try:
            frames, metadata = decode(bytes(data), sampling, budget, 10**6, recover=turn % 2 == 0)
        except ItemError:
            outcomes["refused"] += 1
        else:
            assert len(frames) == len(metadata["frames_indices"])
            outcomes["decoded"] += 1
    assert min(outcomes.values()) > 20, outcomes


# --- a file that decord2 3.4 dies of ------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "sampling": FrameSampling(num_frames=8),
    "budget": PixelBudget(),
    "max_pixels": 10**6,
}


def test_a_real_segfault_costs_its_item() -> None:
    isolated = IsolatedDecoder()
    try:
        with pytest.raises(ItemError) as caught:
            isolated.decode(
                decode_video, SEGFAULT.read_bytes(), {**OPTIONS, "backend": "decord"}, Limits(60, 2**32)
            )
        assert caught.value.code is Code.DECODE_CRASH
        frames, _ = isolated.decode(decode_video, clip(), {**OPTIONS, "backend": "decord"}, Limits(60, 2**32))
        assert seen(frames) == [0, 7, 14, 21, 28, 35, 42, 49]
    finally:
        isolated.close()


def test_pyav_does_not_die_of_it() -> None:
    error = refusal(SEGFAULT.read_bytes(), sampling=OPTIONS["sampling"])
    assert error.code is Code.DECODE_CORRUPT
    frames, metadata = decode(SEGFAULT.read_bytes(), OPTIONS["sampling"], recover=True)
    assert metadata["frames_indices"] == [0, 1, 2, 3, 4, 5, 6]
    assert frames.shape == (7, 96, 160, 3)
