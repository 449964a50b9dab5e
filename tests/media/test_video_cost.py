"""A half-hour video costs what its sampled frames cost, counted in packets that are decoded."""

import io
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest

from pipeline.media import seeking
from pipeline.media.sampling import FrameSampling
from tests.media.clips import clip, decode

GROUP, GROUPS, FPS = 50, 1080, 30
SECONDS = GROUP * GROUPS / FPS


@pytest.fixture(scope="module")
def half_hour() -> bytes:
    """54,000 frames at 30 a second: one closed group of 50, again and again."""
    picture = np.zeros((48, 64, 3), np.uint8)
    settings = {"preset": "ultrafast", "g": str(GROUP), "x264-params": f"bframes=2:keyint={GROUP}:scenecut=0"}
    group = clip(lambda _: picture, GROUP, "matroska", encoder=settings)
    out = io.BytesIO()
    with av.open(io.BytesIO(group)) as one, av.open(out, "w", format="mp4") as long:
        stream = long.add_stream_from_template(one.streams.video[0])
        packets = [packet for packet in one.demux(video=0) if packet.size]
        stream.time_base = Fraction(1, 512 * FPS)
        times = [(round(packet.pts * packets[0].time_base * 10), k) for k, packet in enumerate(packets)]
        for repeat in range(GROUPS):
            for (shown, coded), packet in zip(times, packets, strict=True):
                again = av.Packet(bytes(packet))
                again.is_keyframe = packet.is_keyframe
                again.time_base = Fraction(1, FPS)
                again.pts, again.dts = repeat * GROUP + shown, repeat * GROUP + coded - 3
                again.stream = stream
                long.mux(again)
    return out.getvalue()


@pytest.mark.parametrize(
    ("sampling", "times", "groups"),
    [
        ({"num_frames": 4}, [0, SECONDS / 3, SECONDS * 2 / 3, SECONDS], 4),
        ({"keyframes": True, "max_frames": 4}, [0, SECONDS / 3, SECONDS * 2 / 3, SECONDS], 0.2),
        ({"num_frames": 4, "start": 1200.0, "end": 1201.0}, [1200, 1200.3, 1200.6, 1201], 1.2),
        ({"fps": 0.002}, [0, 500, 1000, 1500], 4),
    ],
)
def test_it_costs_what_its_sampled_frames_cost(
    half_hour: bytes,
    sampling: dict[str, Any],
    times: list[float],
    groups: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fed = []
    frames = seeking._frames

    def counted(context: Any, packet: Any, taker: Any) -> Iterator[Any]:
        fed.append(packet)
        return frames(context, packet, taker)

    monkeypatch.setattr(seeking, "_frames", counted)
    _, metadata = decode(half_hour, FrameSampling(**sampling))
    assert metadata["total_num_frames"] == GROUP * GROUPS
    assert metadata["fps"] == pytest.approx(FPS)
    found = [index / metadata["fps"] for index in metadata["frames_indices"]]
    assert np.abs(np.array(found) - times).max() < 1.01 * GROUP / FPS  # a keyframe is at most so far
    # Beyond its group a frame needs the few packets until the decoder gives it.
    assert len(fed) <= groups * GROUP + 10 * len(times)
