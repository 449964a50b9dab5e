"""Clips whose frame k is known by its grey level, made with PyAV, and files that are no or broken videos."""

import io
from typing import Any

import av
import numpy as np
import pytest

from pipeline.errors import Code
from pipeline.media import clip as clip_module
from pipeline.media import pyav_frames
from pipeline.media.boxes import boxes
from pipeline.media.shrink import PixelBudget
from pipeline.media.sniff import is_cut_short
from pipeline.media.video import FrameSampling
from tests.media.clips import (
    BLACK,
    BLUE,
    GREEN,
    HEIGHT,
    RED,
    WIDTH,
    clip,
    decode,
    quadrants,
    refusal,
    seen,
)


@pytest.fixture(scope="module")
def mp4() -> bytes:
    return clip()


# --- frames and metadata ------------------------------------------------------------------------------------


def test_evenly_spaced_frames_and_their_metadata(mp4: bytes) -> None:
    frames, metadata = decode(mp4, FrameSampling(num_frames=8))
    assert frames.dtype == np.uint8
    assert frames.shape == (8, HEIGHT, WIDTH, 3)
    assert seen(frames) == [0, 7, 14, 21, 28, 35, 42, 49]
    assert metadata == {
        "fps": 10.0,
        "duration": 5.0,
        "total_num_frames": 50,
        "frames_indices": [0, 7, 14, 21, 28, 35, 42, 49],
        "video_backend": "pyav",
        "do_sample_frames": False,
    }
    kinds = [float, float, int, list, str, bool]
    assert [type(value) for value in metadata.values()] == kinds
    assert {type(index) for index in metadata["frames_indices"]} == {int}


def test_by_rate(mp4: bytes) -> None:
    frames, metadata = decode(mp4, FrameSampling(fps=1))
    assert seen(frames) == metadata["frames_indices"] == [0, 10, 20, 30, 40]
    frames, metadata = decode(mp4, FrameSampling(fps=5, max_frames=3))
    assert seen(frames) == metadata["frames_indices"] == [0, 24, 49]


def test_a_short_clip_gives_every_frame_once() -> None:
    frames, metadata = decode(clip(frames=5), FrameSampling(num_frames=8))
    assert seen(frames) == metadata["frames_indices"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        ("mov", "libx264"),
        ("matroska", "libx264"),
        ("webm", "libvpx-vp9"),
        ("mp4", "libsvtav1"),
        ("avi", "libx264"),
        ("avi", "mpeg4"),
        ("flv", "libx264"),
        ("mpeg", "mpeg2video"),
        ("asf", "wmv2"),
    ],
)
def test_other_containers_and_codecs(kind: str, codec: str) -> None:
    frames, metadata = decode(clip(kind=kind, codec=codec), FrameSampling(num_frames=8))
    assert seen(frames) == metadata["frames_indices"] == [0, 7, 14, 21, 28, 35, 42, 49]


def test_a_fragmented_mp4() -> None:
    data = clip(movflags="frag_keyframe+empty_moov")
    assert b"moof" in data
    assert seen(decode(data, FrameSampling(num_frames=4))[0]) == [0, 16, 32, 49]


# --- size ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [16, 32, 48, 96, 144, 130, 158])
def test_narrow_frames(width: int) -> None:
    wide = clip(lambda _: quadrants(192, 96), frames=2)
    native = clip(lambda _: quadrants(width, 64), frames=2)
    for frames in (decode(native)[0], decode(wide, budget=PixelBudget(max_side=width))[0]):
        assert frames.shape[2] == width
        height = frames.shape[1]
        for (y, x), colour in {(1, 1): RED, (1, 3): GREEN, (3, 1): BLUE, (3, 3): BLACK}.items():
            found = frames[0, height * y // 4, width * x // 4].astype(int)
            assert np.abs(found - colour).max() < 25


def test_the_budget_bounds_each_frame_and_changes_nothing_else(mp4: bytes) -> None:
    frames, metadata = decode(mp4, FrameSampling(num_frames=3), PixelBudget(max_pixels=6000))
    assert frames.shape == (3, 60, 100, 3)
    assert seen(frames) == metadata["frames_indices"] == [0, 24, 49]


# --- refusals -----------------------------------------------------------------------------------------------


def test_too_large_a_frame_is_refused_by_the_header_alone(mp4: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_decoding(*_: Any) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(pyav_frames.PyAVDecoder, "decode", no_decoding)
    error = refusal(mp4, max_pixels=WIDTH * HEIGHT - 1)
    assert error.code is Code.TOO_LARGE
    assert "24000" in error.reason
    assert "23999" in error.reason


def test_too_large_a_frame_is_refused_where_the_header_is_not_read() -> None:
    data = clip(frames=2, kind="matroska")
    assert refusal(data, max_pixels=WIDTH * HEIGHT - 1).code is Code.TOO_LARGE
    assert len(decode(data, max_pixels=WIDTH * HEIGHT)[0]) == 2


def test_a_bound_that_bounds_nothing(mp4: bytes) -> None:
    assert seen(decode(mp4, FrameSampling(num_frames=2), max_pixels=10**15)[0]) == [0, 49]


def test_too_many_pixels_in_all(mp4: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clip_module, "MAX_CLIP_BYTES", 20 * WIDTH * HEIGHT * 3)
    assert len(decode(mp4, FrameSampling(num_frames=20))[0]) == 20
    error = refusal(mp4, sampling=FrameSampling(num_frames=21))
    assert error.code is Code.TOO_LARGE
    assert "21 frames" in error.reason


def audio_only() -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        for _ in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate = 16000
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out.getvalue()


def test_what_is_no_video_is_named() -> None:
    assert refusal(b"").code is Code.EMPTY_FILE
    for data, name in [
        (b"<!doctype html><html></html>", "HTML page"),
        (b"<Error><Code>AccessDenied</Code></Error>", "AccessDenied"),
        (b"%PDF-1.4", "PDF"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "WAV"),
        (b"\x07" * 100, "no format"),
        (audio_only(), "no video stream"),
    ]:
        error = refusal(data)
        assert error.code is Code.NOT_MEDIA
        assert name in error.reason


@pytest.mark.parametrize("kind", ["mp4", "matroska", "avi"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_truncated(kind: str, part: float) -> None:
    data = clip(lambda k: np.random.default_rng(k).integers(0, 255, (64, 200, 3), np.uint8), 12, kind)
    assert not is_cut_short(data)
    decode(data)
    assert refusal(data[: int(len(data) * part)]).code is Code.DECODE_TRUNCATED


def test_truncated_where_the_index_comes_first(mp4: bytes) -> None:
    found = {box.kind: mp4[box.start - 8 : box.end] for box in boxes(mp4)}
    data = found[b"ftyp"] + found[b"moov"] + found[b"mdat"]
    assert not is_cut_short(data)
    assert refusal(data[:-50]).code is Code.DECODE_TRUNCATED
    assert refusal(found[b"ftyp"] + found[b"mdat"]).code is Code.DECODE_TRUNCATED  # a recorder's power cut


def test_corrupt(mp4: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    data = bytearray(mp4)
    start = data.index(b"mdat") + 4
    end = data.index(b"moov") - 4
    data[start:end] = bytes(end - start)
    assert refusal(bytes(data)).code is Code.DECODE_CORRUPT
    assert capfd.readouterr().err == ""


def test_decoding_says_nothing_on_stderr(mp4: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    decode(mp4, FrameSampling(num_frames=4))
    refusal(audio_only())
    assert capfd.readouterr().err == ""
