"""The colours of video frames: each matrix, range and depth, and transparency, worked out by arithmetic."""

import io

import av
import numpy as np
import pytest

from tests.media.clips import decode

YUV = (120, 90, 160)


def rgb_of(kr: float, kb: float, full: bool) -> list[int]:
    """ITU-T H.273, 8.3: luma and chroma to RGB, by the weights of red and blue in luma."""
    y, cb, cr = YUV
    luma = y / 255 if full else (y - 16) / 219
    u, v = ((cb - 128) / 255, (cr - 128) / 255) if full else ((cb - 128) / 224, (cr - 128) / 224)
    red, blue = luma + 2 * (1 - kr) * v, luma + 2 * (1 - kb) * u
    green = (luma - kr * red - kb * blue) / (1 - kr - kb)
    return [round(255 * min(1, max(0, value))) for value in (red, green, blue)]


def plain(space: int, colour_range: int, depth: int) -> bytes:
    """A lossless clip of one colour, its planes filled by hand."""
    out = io.BytesIO()
    name, kind = ("yuv444p", np.uint8) if depth == 8 else ("yuv444p10le", np.uint16)
    with av.open(out, "w", format="matroska") as container:
        stream = container.add_stream("ffv1", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, name
        stream.codec_context.colorspace, stream.codec_context.color_range = space, colour_range
        frame = av.VideoFrame(64, 48, name)
        for plane, value in zip(frame.planes, YUV, strict=True):
            plane.update(
                np.full((48, plane.line_size // np.dtype(kind).itemsize), value << (depth - 8), kind).tobytes()
            )
        frame.colorspace, frame.color_range = space, colour_range
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    return out.getvalue()


@pytest.mark.parametrize(
    ("space", "weights"),
    [(1, (0.2126, 0.0722)), (5, (0.299, 0.114)), (9, (0.2627, 0.0593)), (2, (0.299, 0.114))],
    ids=["BT.709", "BT.601", "BT.2020", "unsaid"],
)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("depth", [8, 10])
def test_luma_and_chroma_by_the_matrix_that_the_file_names(
    space: int, weights: tuple[float, float], full: bool, depth: int
) -> None:
    found = decode(plain(space, 2 if full else 1, depth))[0][0, 20, 20].astype(int)
    assert np.abs(found - rgb_of(*weights, full)).max() <= 2, found


@pytest.mark.parametrize(("codec", "kind"), [("png", "mov"), ("qtrle", "mov")])
def test_transparency_is_laid_over_white(codec: str, kind: str) -> None:
    out = io.BytesIO()
    with av.open(out, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "rgba" if codec == "png" else "argb"
        pixels = np.zeros((16, 32, 4), np.uint8)
        pixels[:, :16] = [255, 0, 0, 0]
        pixels[:, 16:] = [0, 0, 255, 51 if codec == "png" else 255]
        for packet in [*stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgba")), *stream.encode()]:
            container.mux(packet)
    frame = decode(out.getvalue())[0][0]
    assert frame[8, 4].tolist() == [255, 255, 255]
    assert frame[8, 24].tolist() == ([204, 204, 255] if codec == "png" else [0, 0, 255])
