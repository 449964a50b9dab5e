"""What another decoder makes of a file: ImageMagick of images, ffmpeg of videos and what ImageMagick lacks."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.media.making.case import Case, run
from tests.media.making.drawing import Pixels, number_in, quarters

SRGB = "/usr/share/color/icc/sRGB.icc"
_UPRIGHT = {
    1: [],
    2: ["-flop"],
    3: ["-rotate", "180"],
    4: ["-flip"],
    5: ["-transpose"],
    6: ["-rotate", "90"],
    7: ["-transverse"],
    8: ["-rotate", "270"],
}
_FRAMES = 4


def expectation(case: Case) -> dict[str, Any]:
    """The case as a row of the table: its size and mean colours, or the codes with which it may fail."""
    row: dict[str, Any] = {"file": case.name, "kind": case.kind, "role": case.role}
    if case.recover:
        row["recover"] = True
    if case.role == "video":
        row["sampling"] = case.sampling or {"num_frames": _FRAMES}
    if case.codes:
        return {**row, "codes": sorted(case.codes)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(case.reference or case.data)
        frames = _by_ffmpeg(path, case) if case.by == "ffmpeg" else [_by_imagemagick(path, case)]
    if case.role == "video":
        numbers = [number_in(frame) for frame in frames]
        wanted = case.frames if case.frames is not None else tuple(numbers[k] for k in _evenly(len(numbers)))
        assert set(wanted) <= set(numbers), f"{case.name}: ffmpeg reads {numbers}"
        row["frames"] = list(wanted)
        first = frames[numbers.index(wanted[0])]
    else:
        first = frames[0]
    return {**row, "by": case.by, "size": [first.shape[1], first.shape[0]], "quarters": quarters(first)}


def _evenly(total: int) -> list[int]:
    if total <= _FRAMES:
        return list(range(total))
    return [(total - 1) * k // (_FRAMES - 1) for k in range(_FRAMES)]


def _by_imagemagick(path: Path, case: Case) -> Pixels:
    source = f"{case.format}:{path}[0]" if case.format else f"{path}[0]"
    profile = (
        ["-intent", "relative", "-black-point-compensation", "-profile", SRGB] if "ICC" in case.kind else []
    )
    white = ["-background", "white", "-alpha", "remove", "-alpha", "off"]
    plain = ["-colorspace", "sRGB", "-type", "TrueColor", "-depth", "8", "ppm:-"]
    return _ppms(run("convert", source, *profile, *white, *_UPRIGHT[case.orientation], *plain))[0]


def _by_ffmpeg(path: Path, case: Case) -> list[Pixels]:
    given = ["-f", case.format] if case.format else []
    filters = ["-vf", case.filters] if case.filters else []
    exact = ["-sws_flags", "bicubic+accurate_rnd+full_chroma_int"]
    output = [
        "-map",
        "0:V:0",
        "-vsync",
        "passthrough",
        "-f",
        "image2pipe",
        "-c:v",
        "ppm",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    return _ppms(run("ffmpeg", "-v", "error", *given, "-i", path, *filters, *exact, *output))


def _ppms(data: bytes) -> list[Pixels]:
    found, at = [], 0
    while at < len(data):
        head = re.compile(rb"P6\s(\d+)\s(\d+)\s255\s").match(data, at)
        assert head, data[at : at + 20]
        width, height = int(head[1]), int(head[2])
        at = head.end() + width * height * 3
        found.append(np.frombuffer(data[head.end() : at], np.uint8).reshape(height, width, 3))
    return found
