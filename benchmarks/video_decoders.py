"""Times N evenly spaced frames of a clip with PyAV, as the pipeline uses it, and with decord, in turns.

    python -m benchmarks.video_decoders [clip.mp4] [--runs 5] [--counts 8 16]

Without a clip it makes one of 20 s, 1080p, H.264 with PyAV. Seconds are by the clock and of CPU time, one
decoding thread, opening included; what else runs on the machine meets both alike, since their runs alternate.
The last column is how far their pixels are apart: they convert colours by different code, so not 0.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Literal

import av
import numpy as np
import numpy.typing as npt

from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import decode_video

BACKENDS: tuple[Literal["pyav", "decord"], ...] = ("pyav", "decord")
ENCODER = {"preset": "veryfast", "g": "250"}


def main() -> None:
    """Print the median seconds of each backend for each number of frames."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?", help="the video file to time")
    parser.add_argument("--runs", type=int, default=5, help="timed runs for each N (default: 5)")
    parser.add_argument("--counts", type=int, nargs="+", default=[8, 16], help="frames (default: 8 16)")
    parser.add_argument("--max-pixels", type=int, help="shrink frames to so many pixels")
    args = parser.parse_args()
    data = args.clip.read_bytes() if args.clip else made()
    decord = sorted(set(metadata.packages_distributions().get("decord", [])))
    print(
        f"av {av.__version__},", *(f"{name} {metadata.version(name)}," for name in decord), len(data), "bytes"
    )
    for count in args.counts:
        print(line(data, count, args.runs, PixelBudget(max_pixels=args.max_pixels)))


def line(data: bytes, count: int, runs: int, budget: PixelBudget) -> str:
    """Return what there is to say about `count` frames."""
    clock: dict[str, list[float]] = {name: [] for name in BACKENDS}
    cpu: dict[str, list[float]] = {name: [] for name in BACKENDS}
    frames: dict[str, npt.NDArray[np.uint8]] = {}
    for run in range(runs):
        for name in BACKENDS if run % 2 else BACKENDS[::-1]:
            start, busy = time.perf_counter(), time.process_time()
            frames[name], _ = decode_video(
                data, sampling=FrameSampling(count), budget=budget, max_pixels=2**30, backend=name
            )
            clock[name].append(time.perf_counter() - start)
            cpu[name].append(time.process_time() - busy)
    told = [
        f"{name} {statistics.median(clock[name]):.2f} s ({statistics.median(cpu[name]):.2f} s CPU)"
        for name in BACKENDS
    ]
    apart = np.abs(frames["pyav"].astype(np.int16) - frames["decord"]).mean()
    return f"{count:3} frames: {', '.join(told)}, median of {runs}; pixels {apart:.2f} of 255 apart"


def made() -> bytes:
    """Return a clip of 600 frames: moving bars and blocks over a fixed, detailed ground."""
    rnd = np.random.default_rng(0)
    ground = rnd.integers(0, 255, (135, 240, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    with tempfile.NamedTemporaryFile(suffix=".mp4") as file:
        with av.open(file.name, "w") as container:
            stream = container.add_stream("libx264", rate=Fraction(30), options=ENCODER)
            stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
            for k in range(600):
                picture = ground.copy()
                picture[:, k * 3 % 1800 : k * 3 % 1800 + 100] = (k % 250, 90, 200)
                picture[k % 900 : k % 900 + 150] //= 2
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        return Path(file.name).read_bytes()


if __name__ == "__main__":
    main()
