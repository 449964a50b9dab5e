"""Writes frames as an H.264 file that every player and decoder reads."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from PIL import Image

# One thread and a fixed quality: the same frames give the same bytes with the same libx264.
_CODEC_OPTIONS = {"crf": "16", "preset": "medium", "threads": "1"}


def encode_video(frames: Sequence[Image.Image], path: Path, frames_per_second: int) -> None:
    """Encodes frames of one even size to `path` (MP4, H.264, yuv420p).

    Raises:
        RuntimeError: PyAV is not installed.
    """
    av = _import_av()
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=frames_per_second)
        stream.width, stream.height = frames[0].size
        stream.pix_fmt = "yuv420p"
        stream.options = _CODEC_OPTIONS
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_image(frame)))
        container.mux(stream.encode(None))


def _import_av() -> ModuleType:
    try:
        return importlib.import_module("av")
    except ModuleNotFoundError as error:
        raise RuntimeError(
            "Videos are encoded with PyAV, which is not installed: pip install av, or ask for no videos."
        ) from error
