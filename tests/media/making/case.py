"""One file of the corpus, and what is to come of it."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Case:
    """A file, what it is for, and how the other decoder has to read it.

    name: of the file, with the extension that it is given.
    kind: what is special about it.
    codes: where it must fail: with one of these.
    orientation: the EXIF orientation put into an image, which the other decoder applies by its own operators.
    by: the other decoder; `format` is its name of the file's format.
    reference: a file of the same pixels, where the other decoder cannot read this one.
    filters: for ffmpeg, what else is to be done to a video (deinterlacing, tone mapping, square pixels).
    frames: the numbers drawn into the frames to come; None: evenly spaced among all that ffmpeg decodes.
    sampling: of FrameSampling; empty: 4 frames.
    """

    name: str
    kind: str
    data: bytes
    role: Literal["image", "video"] = "image"
    codes: tuple[str, ...] = ()
    orientation: int = 1
    by: Literal["imagemagick", "ffmpeg"] = "imagemagick"
    format: str = ""
    reference: bytes = b""
    filters: str = ""
    frames: tuple[int, ...] | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    recover: bool = False


def run(*command: str | Path, data: bytes = b"") -> bytes:
    """Return what a program writes; raises with its own words when it fails."""
    done = subprocess.run([str(part) for part in command], input=data, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def through(*command: str, data: bytes = b"", suffix: str = "", given: str = "") -> bytes:
    """Return the file that a program writes to `OUT`, from `data` in the file `IN`."""
    with tempfile.TemporaryDirectory() as folder:
        read, written = Path(folder) / f"in{given}", Path(folder) / f"out{suffix}"
        read.write_bytes(data)
        run(*(part.replace("IN", str(read)).replace("OUT", str(written)) for part in command))
        return written.read_bytes()
