"""Times N evenly spaced frames of a clip with whatever package provides the module `decord` here.

Run it in one environment per package (both `decord` and `decord2` install the module `decord`):

    python benchmarks/video_decoders.py [clip.mp4] [--runs 5]

Without a clip it makes one of 20 s, 1080p, H.264 with ffmpeg (from PATH or imageio-ffmpeg). The digest printed
for each N tells whether two packages give the same pixels; `--save` keeps the frames for a closer look.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
import statistics
import subprocess
import time
from importlib import metadata
from pathlib import Path

import decord
import numpy as np
import numpy.typing as npt

CLIP = ["-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=30:duration=20", "-pix_fmt", "yuv420p"]
ENCODER = ["-c:v", "libx264", "-preset", "veryfast", "-g", "250"]


def main() -> None:
    """Print the package, its version and the median seconds for 8 and 16 frames."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?", help="the video file to time")
    parser.add_argument("--runs", type=int, default=5, help="timed runs for each N (default: 5)")
    parser.add_argument("--threads", type=int, default=1, help="decoding threads (default: 1)")
    parser.add_argument(
        "--made", type=Path, default=Path("/tmp/framescribe_benchmark.mp4"), help="where to make it"
    )
    parser.add_argument("--save", type=Path, help="save the 16 frames to this .npy file")
    args = parser.parse_args()
    data = (args.clip or made(args.made)).read_bytes()
    print(*packages(), f"threads={args.threads}", f"clip={len(data)} bytes")
    for count in (8, 16):
        times, cpu, frames = timed(data, count, args.runs, args.threads)
        digest = hashlib.blake2b(frames.tobytes(), digest_size=8).hexdigest()
        median, of_cpu = statistics.median(times), statistics.median(cpu)
        print(f"{count:2} frames: median {median:.2f} s ({of_cpu:.2f} s CPU) of {args.runs}  pixels {digest}")
        if args.save:
            np.save(args.save, frames)


def packages() -> list[str]:
    """Return name and version of each installed distribution that provides the module `decord`."""
    names = metadata.packages_distributions().get("decord", ["decord (unknown)"])
    return [f"{name} {metadata.version(name)}" for name in sorted(set(names))]


def timed(
    data: bytes, count: int, runs: int, threads: int
) -> tuple[list[float], list[float], npt.NDArray[np.uint8]]:
    """Return the seconds of each run, opening included, its CPU seconds, and the frames, (count, H, W, 3)."""
    times, cpu = [], []
    for _ in range(runs):
        start, cpu_start = time.perf_counter(), time.process_time()
        reader = decord.VideoReader(io.BytesIO(data), ctx=decord.cpu(0), num_threads=threads)
        indices = np.linspace(0, len(reader) - 1, count).astype(int).tolist()
        frames = reader.get_batch(indices).asnumpy()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return times, cpu, frames


def made(path: Path) -> Path:
    """Return `path`, where the clip is made if it is not there yet; raises SystemExit without an ffmpeg."""
    if not path.exists():
        subprocess.run([ffmpeg(), "-loglevel", "error", *CLIP, *ENCODER, str(path)], check=True)
    return path


def ffmpeg() -> str:
    """Return the path of an ffmpeg program; raises SystemExit where there is none."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        raise SystemExit("no ffmpeg: install it, or imageio-ffmpeg, or name a clip") from None
    return str(get_ffmpeg_exe())


if __name__ == "__main__":
    main()
