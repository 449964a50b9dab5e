"""The right frame k in every container and codec, by seeking and in turn, and what is no clip at all."""

import gc
import io
import os
import struct
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from av.rational import AVRational
from av.stream import Disposition

from pipeline.errors import Code
from pipeline.media import pyav_frames, seeking, sniff, timeline
from pipeline.media.pyav_frames import PyAVDecoder
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from pipeline.media.timeline import read_timeline
from tests.media.clips import FRAMES, HEIGHT, WIDTH, clip, decode, grey, level, refusal, seen

B_FRAMES = {"bf": "2", "crf": "", "qmin": "1", "qmax": "2", "b_qfactor": "1", "b_qoffset": "0"}
OPEN_GOP = "open-gop=1:bframes=3:keyint=12:min-keyint=12:scenecut=0"
KINDS: dict[str, dict[str, Any]] = {
    "mp4 h264 open GOP": {"encoder": {"x264-params": OPEN_GOP}},
    "mp4 h264 gradual refresh": {"encoder": {"x264-params": "intra-refresh=1:keyint=12:bframes=0"}},
    "mp4 hevc": {"codec": "libx265", "encoder": {"x265-params": "log-level=none"}},
    "mp4 hevc open GOP": {"codec": "libx265", "encoder": {"x265-params": f"{OPEN_GOP}:log-level=none"}},
    "mp4 hevc 10 bit": {
        "codec": "libx265",
        "pixels": "yuv420p10le",
        "encoder": {"x265-params": "log-level=none"},
    },
    "mp4 av1": {"codec": "libsvtav1"},
    "mov prores": {"kind": "mov", "codec": "prores_ks", "pixels": "yuv422p10le", "encoder": {"crf": ""}},
    "mov mjpeg": {"kind": "mov", "codec": "mjpeg", "pixels": "yuvj420p", "encoder": {"crf": "", "g": ""}},
    "mkv hevc": {"kind": "matroska", "codec": "libx265", "encoder": {"x265-params": "log-level=none"}},
    "mkv ffv1": {"kind": "matroska", "codec": "ffv1"},
    "webm vp8": {"kind": "webm", "codec": "libvpx"},
    "webm vp8 hidden frames": {
        "kind": "webm",
        "codec": "libvpx",
        "encoder": {"auto-alt-ref": "1", "lag-in-frames": "16", "b": "400k"},
    },
    "webm vp9": {"kind": "webm", "codec": "libvpx-vp9"},
    "ts h264": {"kind": "mpegts"},
    "ts h264 open GOP": {"kind": "mpegts", "encoder": {"x264-params": OPEN_GOP}},
    "ts hevc": {"kind": "mpegts", "codec": "libx265", "encoder": {"x265-params": "log-level=none"}},
    "ts mpeg2": {"kind": "mpegts", "codec": "mpeg2video", "encoder": B_FRAMES},
    "ps mpeg2": {"kind": "mpeg", "codec": "mpeg2video", "encoder": B_FRAMES},
    "ps mpeg1": {"kind": "mpeg", "codec": "mpeg1video", "encoder": {**B_FRAMES, "strict": "-2"}},
    "bare mpeg2": {"kind": "mpeg2video", "codec": "mpeg2video", "encoder": B_FRAMES},
    "avi h264": {"kind": "avi"},
    "avi mpeg4": {"kind": "avi", "codec": "mpeg4", "encoder": B_FRAMES},
    "avi mjpeg": {"kind": "avi", "codec": "mjpeg", "pixels": "yuvj420p", "encoder": {"crf": "", "g": ""}},
    "avi raw": {"kind": "avi", "codec": "rawvideo", "encoder": {"crf": "", "qmax": "", "g": ""}},
    "flv h264": {"kind": "flv"},
    "wmv": {"kind": "asf", "codec": "wmv2"},
    "gif": {"kind": "gif", "codec": "gif", "pixels": "rgb8", "encoder": {"crf": "", "g": ""}},
}


@pytest.fixture(scope="module", params=list(KINDS))
def made(request: pytest.FixtureRequest) -> bytes:
    return clip(**KINDS[request.param])


def test_every_frame_in_turn(made: bytes) -> None:
    frames, metadata = decode(made)
    assert seen(frames) == metadata["frames_indices"] == list(range(FRAMES))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 13])
def test_frames_by_seeking(made: bytes, count: int) -> None:
    frames, metadata = decode(made, FrameSampling(num_frames=count))
    expected = np.linspace(0, FRAMES - 1, count).astype(int).tolist()
    assert seen(frames) == metadata["frames_indices"] == expected
    assert metadata["total_num_frames"] == FRAMES
    assert metadata["duration"] == pytest.approx(FRAMES / metadata["fps"])


def test_a_part_of_the_file_that_an_edit_list_hides_is_not_counted() -> None:
    data = clip()
    at = data.index(b"elst") + 12
    assert data[at - 4 : at] == b"\0\0\0\1"
    length, start, rate = struct.unpack(">IiI", data[at : at + 12])
    scale = 10240  # of the track; the movie's is 1000
    assert (length, rate) == (5000, 1 << 16)
    shown = struct.pack(">IiI", 2000, start + 15 * scale // 10, rate)
    edited = data[:at] + shown + data[at + 12 :]
    frames, metadata = decode(edited)
    assert seen(frames) == list(range(15, 35))
    assert (metadata["total_num_frames"], metadata["duration"]) == (20, 2.0)
    assert metadata["frames_indices"] == list(range(20))
    assert seen(decode(edited, FrameSampling(fps=2))[0]) == [15, 20, 25, 30]


def test_divx_that_packs_two_frames_in_one_packet_is_decoded_in_turn() -> None:
    for name, counted in (("a film", False), ("DivX503b1393p", True)):
        data = clip(kind="avi", codec="mpeg4", encoder=B_FRAMES)
        with PyAVDecoder(data, "AVI video", 10**6, False)._opened() as (container, stream):
            timeline = read_timeline(container, stream, name.encode() + data[:2048])
        assert timeline is not None
        assert timeline.counted is counted
        assert len(timeline.shown) == FRAMES


# --- uneven times -------------------------------------------------------------------------------------------

TIMES = [0, 2, 4, 6, 40, 80, 82, 84, 120, 122, 124, 200]  # hundredths of a second
UNEVEN = {"mp4": {}, "matroska": {}, "mpegts": {}}


@pytest.mark.parametrize("kind", list(UNEVEN))
def test_frames_that_come_unevenly_have_their_true_times(kind: str) -> None:
    data = clip(frames=12, kind=kind, times=TIMES)
    frames, metadata = decode(data)
    assert seen(frames) == list(range(12))
    times = [index / metadata["fps"] for index in metadata["frames_indices"]]
    assert np.abs(np.array(times) - np.array(TIMES) / 100).max() < 0.011
    assert all(one < other for one, other in pairwise(metadata["frames_indices"]))
    assert metadata["frames_indices"][-1] < metadata["total_num_frames"]
    assert metadata["duration"] == pytest.approx(metadata["total_num_frames"] / metadata["fps"])
    assert 2.0 < metadata["duration"] < 2.5


@pytest.mark.parametrize("kind", list(UNEVEN))
def test_by_rate_it_is_what_is_on_screen_then(kind: str) -> None:
    data = clip(frames=12, kind=kind, times=TIMES)
    # At 0, 0.2, 0.4, …: frames 0, 3 (0.06), 4 (0.4), 4, 5 (0.8), 7 (0.84), 8 (1.2), 10 (1.24) until 2.0: 11.
    assert seen(decode(data, FrameSampling(fps=5))[0]) == [0, 3, 4, 5, 7, 8, 10, 11]
    # At 0, 1 and 2 seconds.
    assert seen(decode(data, FrameSampling(fps=5, max_frames=3))[0]) == [0, 7, 11]


# --- few frames, and none -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts", "flv", "avi", "gif"])
@pytest.mark.parametrize("sampling", [FrameSampling(num_frames=8), FrameSampling(fps=2.0)])
def test_a_clip_of_one_frame(kind: str, sampling: FrameSampling) -> None:
    frames, metadata = decode(clip(frames=1, **KINDS["gif"] if kind == "gif" else {"kind": kind}), sampling)
    assert seen(frames) == metadata["frames_indices"] == [0]
    assert metadata["total_num_frames"] == 1
    assert metadata["fps"] > 0


@pytest.mark.parametrize("unknown", [None, AVRational(0, 0), AVRational(0, 1), AVRational(1, 0)])
def test_a_frame_rate_that_is_not_known_is_guessed(unknown: AVRational | None) -> None:
    film = Fraction(24000, 1001)
    assert timeline._rate(SimpleNamespace(average_rate=unknown, guessed_rate=film)) == film
    assert timeline._rate(SimpleNamespace(average_rate=unknown, guessed_rate=unknown)) is None


@pytest.mark.parametrize("kind", ["mp4", "matroska", "avi"])
def test_a_clip_without_frames(kind: str) -> None:
    out = io.BytesIO()
    options = {"movflags": "empty_moov"} if kind == "mp4" else {}
    with av.open(out, "w", format=kind, options=options) as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        container.start_encoding()
    error = refusal(out.getvalue())
    assert error.code is Code.NOT_MEDIA
    assert "no frames" in error.reason


def with_cover(*, and_a_clip: bool) -> bytes:
    """Sound with a picture of its cover, as music shops sell it."""
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        cover = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 64, "yuvj420p"
        cover.disposition = Disposition.attached_pic
        sound = container.add_stream("aac", rate=16000, layout="mono")
        film = container.add_stream("libx264", rate=10, options={"crf": "4"}) if and_a_clip else None
        if film is not None:
            film.width, film.height, film.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        red = np.full((64, 64, 3), (255, 0, 0), np.uint8)
        for packet in [*cover.encode(av.VideoFrame.from_ndarray(red, format="rgb24")), *cover.encode()]:
            container.mux(packet)
        for _ in range(8):
            quiet = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            quiet.sample_rate = 16000
            container.mux(sound.encode(quiet))
        container.mux(sound.encode())
        for k in range(6 if film is not None else 0):
            container.mux(film.encode(av.VideoFrame.from_ndarray(grey(k), format="rgb24")))
        if film is not None:
            container.mux(film.encode())
    return out.getvalue()


def test_a_cover_is_no_clip() -> None:
    with av.open(io.BytesIO(with_cover(and_a_clip=False))) as check:
        assert check.streams.video[0].disposition & Disposition.attached_pic
    error = refusal(with_cover(and_a_clip=False))
    assert error.code is Code.NOT_MEDIA
    assert "audio only" in error.reason
    assert seen(decode(with_cover(and_a_clip=True))[0]) == [0, 1, 2, 3, 4, 5]


def striped(_: int) -> np.ndarray:
    rows = np.where(np.arange(HEIGHT) % 2, level(30), level(2)).astype(np.uint8)
    return np.repeat(np.repeat(rows[:, None, None], WIDTH, 1), 3, 2)


SECOND_PROGRAMME = {"mpegts_service_id": "2", "mpegts_start_pid": "512", "mpegts_pmt_start_pid": "768"}


def test_a_programme_that_begins_later_does_not_end_the_clip() -> None:
    later = io.BytesIO()
    with av.open(later, "w", format="mpegts", options=SECOND_PROGRAMME) as container:
        sound = container.add_stream("mp2", rate=48000, layout="mono")
        for number in range(60):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1152), np.int16), format="s16", layout="mono")
            frame.rate, frame.pts = 48000, 1152 * number
            container.mux(sound.encode(frame))
        container.mux(sound.encode())
    # The clip is longer than what FFmpeg looks at before it names a file's streams.
    first = clip(lambda k: grey(k % FRAMES), 120, "mpegts", "mpeg2video", encoder=B_FRAMES)
    frames, metadata = decode(first + later.getvalue())
    assert (metadata["total_num_frames"], seen(frames)) == (120, [k % FRAMES for k in range(120)])


def test_interlaced_frames_show_their_first_field_without_combs() -> None:
    settings = {"flags": "+ildct+ilme", "crf": "", "qmin": "1", "qmax": "2"}
    frames, _ = decode(clip(striped, 4, "mpegts", "mpeg2video", encoder=settings))
    # The encoder says that the lower field, of odd rows, comes first.
    assert np.abs(frames[:, 8:-8].astype(int) - level(30)).max() < 6


def test_frames_that_are_not_interlaced_keep_every_row() -> None:
    settings = {"crf": "", "qmin": "1", "qmax": "2"}
    frames, _ = decode(clip(striped, 4, "mpegts", "mpeg2video", encoder=settings))
    assert np.abs(frames[:, 8:-8:2].astype(int) - level(2)).mean() < 4
    assert np.abs(frames[:, 9:-8:2].astype(int) - level(30)).mean() < 4


def test_decoding_leaves_no_threads_behind() -> None:
    """A thread holds memory, and a process that decodes thousands of files may not gather them."""
    films = [clip(frames=6), clip(frames=6, pixels="yuv420p10le")]
    gc.disable()
    try:
        decode(films[0])
        before = len(os.listdir("/proc/self/task"))
        for film in films * 3:
            decode(film, budget=PixelBudget(max_pixels=5000))
        assert len(os.listdir("/proc/self/task")) == before
    finally:
        gc.enable()


# --- cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts"])
def test_a_long_clip_costs_what_its_sampled_frames_cost(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.zeros((48, 64, 3), np.uint8)
    quick = {"preset": "ultrafast", "g": "50", "x264-params": "bframes=2:keyint=50:scenecut=0"}
    data = clip(lambda _: picture, 3000, kind, encoder=quick)
    fed = []
    frames = seeking._frames

    def counted(context: Any, packet: Any, taker: Any) -> Any:
        fed.append(packet)
        return frames(context, packet, taker)

    monkeypatch.setattr(seeking, "_frames", counted)
    _, metadata = decode(data, FrameSampling(num_frames=6))
    assert metadata["frames_indices"] == [0, 599, 1199, 1799, 2399, 2999]
    assert len(fed) <= 6 * 58  # 50 from one keyframe to the next, some more until the decoder gives a frame


def test_the_demuxer_is_named_for_every_kind_of_video() -> None:
    videos = {name for _, family, name in sniff._SIGNATURES if family == "video"}
    videos |= {"MP4 or MOV video", "MPEG transport stream", "AVI video", "GIF image"}
    assert set(pyav_frames._DEMUXERS) == videos
    assert not {"hls", "concat", "dash", "image2"} & set(pyav_frames._DEMUXERS.values())


# --- the other backend --------------------------------------------------------------------------------------


def test_decord_on_request() -> None:
    frames, metadata = decode(clip(), FrameSampling(num_frames=8), backend="decord")
    assert seen(frames) == metadata["frames_indices"] == [0, 7, 14, 21, 28, 35, 42, 49]
    assert metadata["video_backend"] == "decord"
    error = refusal(clip(kind="mpegts"), backend="decord")
    assert "media.video.backend" in error.reason
