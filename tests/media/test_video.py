"""Clips whose frame k is known by its grey level, made with PyAV, and files that are no or broken videos."""

import io
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from pipeline.errors import Code, ItemError
from pipeline.media import video as video_module
from pipeline.media.boxes import boxes
from pipeline.media.shrink import PixelBudget
from pipeline.media.sniff import is_cut_short
from pipeline.media.video import FrameSampling, decode_video, frame_indices

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
    **options: str,
) -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format=kind, options=options) as container:
        stream = container.add_stream(codec, rate=Fraction(FPS), options={"g": "12", "crf": "4", "qmax": "4"})
        stream.height, stream.width = picture(0).shape[:2]
        stream.pix_fmt = "yuv420p"
        for index in range(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(index), format="rgb24")))
        container.mux(stream.encode())
    return out.getvalue()


@pytest.fixture(scope="module")
def mp4() -> bytes:
    return clip()


def decode(
    data: bytes, sampling: FrameSampling = ALL, budget: PixelBudget | None = None, max_pixels: int = 10**7
) -> tuple[np.ndarray, dict[str, Any]]:
    return decode_video(data, sampling=sampling, budget=budget or PixelBudget(), max_pixels=max_pixels)


def seen(frames: np.ndarray) -> list[int]:
    """Which frame of the clip each is, read off its grey level."""
    means = frames.reshape(len(frames), -1).mean(axis=1)
    found = np.rint((means - level(0)) / 4)
    assert np.abs(means - level(found)).max() < 1.9, means
    return found.astype(int).tolist()


# --- which frames -------------------------------------------------------------------------------------------


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
        "video_backend": "decord",
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


def test_a_transport_stream_is_refused_rather_than_misread() -> None:
    error = refusal(clip(kind="mpegts"))
    assert error.code is Code.NOT_MEDIA
    assert "remux it to MP4" in error.reason


def test_a_fragmented_mp4() -> None:
    data = clip(movflags="frag_keyframe+empty_moov")
    assert b"moof" in data
    assert seen(decode(data, FrameSampling(num_frames=4))[0]) == [0, 16, 32, 49]


# --- rotation and size --------------------------------------------------------------------------------------

RED, GREEN, BLUE, BLACK = [255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]
# The matrix of the track header, and how RED GREEN / BLUE BLACK is to be shown under it. ISO/IEC 14496-12,
# 6.2.2: (x, y) goes to (ax + cy, bx + dy). 0 1 -1 0 is what a phone held upright writes: clockwise by 90.
ROTATIONS = {
    (1, 0, 0, 1): (RED, GREEN, BLUE, BLACK),
    (0, 1, -1, 0): (BLUE, RED, BLACK, GREEN),
    (-1, 0, 0, -1): (BLACK, BLUE, GREEN, RED),
    (0, -1, 1, 0): (GREEN, BLACK, RED, BLUE),
}


def quadrants(width: int, height: int) -> np.ndarray:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    return pixels


def rotated(data: bytes, a: int, b: int, c: int, d: int) -> bytes:
    upright = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    at = data.index(upright, data.index(b"tkhd"))
    turned = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    return data[:at] + turned + data[at + len(turned) :]


@pytest.mark.parametrize("size", [(200, 120), (120, 96)])
@pytest.mark.parametrize("matrix", list(ROTATIONS))
def test_rotation(matrix: tuple[int, int, int, int], size: tuple[int, int]) -> None:
    width, height = size
    data = rotated(clip(lambda _: quadrants(width, height), frames=3), *matrix)
    w, h = (height, width) if matrix[0] == 0 else (width, height)
    for budget, (to_w, to_h) in {
        PixelBudget(): (w, h),
        PixelBudget(max_pixels=w * h // 4): (w // 2, h // 2),
    }.items():
        frames = decode(data, budget=budget)[0].astype(int)
        assert frames.shape == (3, to_h, to_w, 3)
        for frame in frames:
            parts = [frame[: to_h // 2, : to_w // 2], frame[: to_h // 2, to_w // 2 :]]
            parts += [frame[to_h // 2 :, : to_w // 2], frame[to_h // 2 :, to_w // 2 :]]
            for part, colour in zip(parts, ROTATIONS[matrix], strict=True):
                assert np.abs(part.reshape(-1, 3).mean(axis=0) - colour).max() < 16


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


def refusal(data: bytes, **options: Any) -> ItemError:
    with pytest.raises(ItemError) as caught:
        decode(data, **options)
    assert len(caught.value.reason) < 300
    assert caught.value.reason.isprintable()
    return caught.value


def test_too_large_a_frame_is_refused_by_the_header_alone(mp4: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_decoding(*_: Any) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(video_module, "_decode", no_decoding)
    error = refusal(mp4, max_pixels=WIDTH * HEIGHT - 1)
    assert error.code is Code.TOO_LARGE
    assert "24000" in error.reason
    assert "23999" in error.reason


def test_too_large_a_frame_is_refused_where_the_header_is_not_read() -> None:
    data = clip(frames=2, kind="matroska")
    assert refusal(data, max_pixels=WIDTH * HEIGHT - 1).code is Code.TOO_LARGE
    assert len(decode(data, max_pixels=WIDTH * HEIGHT)[0]) == 2


def test_too_many_pixels_in_all(mp4: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_module, "MAX_CLIP_BYTES", 20 * WIDTH * HEIGHT * 3)
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
