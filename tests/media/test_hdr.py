"""HDR greys and colours on an sRGB screen, against the standards' own numbers."""

import av
import numpy as np
import pytest
from av.video.reformatter import ColorPrimaries, ColorTrc, VideoReformatter

from pipeline.media.hdr import tone_mapped
from tests.media.clips import clip, decode


def frame(rgb: tuple[int, int, int], curve: ColorTrc) -> av.VideoFrame:
    """A frame of one colour, in 16-bit samples of the curve; full range RGB, so no matrix is between."""
    made = av.VideoFrame.from_ndarray(np.full((48, 64, 3), rgb, np.uint16), format="rgb48le")
    made.color_trc, made.color_primaries = curve, ColorPrimaries.BT2020
    return made


def shown(rgb: tuple[int, int, int], curve: ColorTrc) -> list[int]:
    pixels = tone_mapped(VideoReformatter(), frame(rgb, curve), 32, 24)
    assert pixels.shape == (24, 32, 3)
    assert (pixels == pixels[0, 0]).all()
    return [int(value) for value in pixels[0, 0]]


@pytest.mark.parametrize(
    ("signal", "grey"),
    # PQ signals of 0, 10, 60.9 (0.3 of white), 203 and 1,000 nits (ITU-R BT.2408 table 1 has the 58 % of 203).
    # sRGB of light 0, 0.0493 and 0.3, where nothing is pressed; 1,000 nits are white by definition.
    [(0.0, 0), (0.3012, 63), (0.4592, 149), (0.7518, 255), (1.0, 255)],
)
def test_pq_greys(signal: float, grey: int) -> None:
    value = round(signal * 65535)
    assert shown((value,) * 3, ColorTrc.SMPTE2084) == pytest.approx([grey] * 3, abs=1)


def test_white_paper_is_bright_and_below_white() -> None:
    for signal, curve in ((0.5807, ColorTrc.SMPTE2084), (0.75, ColorTrc.ARIB_STD_B67)):
        # 203 nits in both (ITU-R BT.2408, table 1). 213 is what FFmpeg's zscale and tonemap=mobius give.
        assert shown((round(signal * 65535),) * 3, curve) == pytest.approx([213] * 3, abs=2)


def test_hues_stay_and_brighter_is_never_darker() -> None:
    steps = [shown((round(s * 65535),) * 3, ColorTrc.ARIB_STD_B67)[0] for s in np.linspace(0, 1, 30)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 255)
    red, green, blue = shown((52000, 30000, 30000), ColorTrc.SMPTE2084)
    assert red > 200
    assert max(green, blue) < 60


@pytest.mark.parametrize(("curve", "grey"), [("SMPTE2084", 213), ("ARIB_STD_B67", 162), ("BT709", 148)])
def test_a_file_is_shown_by_the_curve_that_it_names(curve: str, grey: int) -> None:
    def tagged(stream: av.VideoStream) -> None:
        stream.codec_context.color_trc = ColorTrc[curve]
        stream.codec_context.color_primaries = ColorPrimaries.BT2020

    # 148 of 255 is 58 % of the signal: 203 nits of PQ. HLG's is by FFmpeg's zscale and tonemap=mobius.
    data = clip(lambda _: np.full((48, 64, 3), 148, np.uint8), 3, "mp4", pixels="yuv420p10le", change=tagged)
    assert decode(data)[0].mean() == pytest.approx(grey, abs=2)
