"""Files decoded a second as the pipeline does it, against a bare thread pool, on so many cores.

    python -m benchmarks.decode_throughput [--files 2000] [--cores 2] [--rounds 3] [--videos] [--draft]

Images: JPEG, PNG and WebP in turn, 0.8 to 1.2 megapixels, shrunk to `--max-pixels`. The pipeline is one
process for each core, as Ray has it, with the prepare stage's loader, its decoding child and its two threads;
bare is a thread pool of as many threads with Pillow: open, (JPEG) draft to twice the size, convert, resize by
the same filter. `--videos`: 8 frames of clips of 5 s (720p H.264), against PyAV alone: seek, decode, convert
at the final size. `--draft`: what reduced-size JPEG decoding brings, in one process: the pipeline's decoder
with and without it.

The ways take turns of 1/10 of the files, so that what else runs on the machine meets both alike; ratios are
of the medians over the rounds, by the clock and by CPU time. On a machine that others overrun, look at the
CPU time: the scheduler gives the pipeline's four processes more of the clock than one process with two
threads.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from benchmarks.media_isolation import cpu_seconds, make
from pipeline.config import MediaConfig
from pipeline.media import image
from pipeline.media.isolated import AT_ONCE
from pipeline.media.load import MediaLoader
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.models.registry import load_spec

TURNS = 10
FRAMES = 8
Timed = tuple[float, float]


def main() -> None:
    """Print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-pixels", type=int, default=400_000)
    parser.add_argument("--videos", action="store_true")
    parser.add_argument("--draft", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.videos:
            make_videos(Path(folder))
        else:
            make(Path(folder))
        files = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    if args.draft:
        draft(files[::3], args.max_pixels, args.files, args.rounds)
    else:
        compare("video" if args.videos else "image", files, args)


def compare(kind: str, files: list[bytes], args: argparse.Namespace) -> None:
    """Print what the pipeline reaches of the bare thread pool."""
    bare_one = bare_video if kind == "video" else bare_image
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for _ in range(args.cores):
        ours, theirs = context.Pipe()
        workers.append(context.Process(target=worker, args=(theirs, kind, files, args.max_pixels), daemon=True))
        pipes.append(ours)
        workers[-1].start()

    def pipeline(count: int) -> float:
        for pipe in pipes:
            pipe.send(count // args.cores)
        return sum(pipe.recv() for pipe in pipes)

    with ThreadPoolExecutor(args.cores) as pool:

        def bare(count: int) -> float:
            busy = resource.getrusage(resource.RUSAGE_SELF)
            for _ in pool.map(lambda n: bare_one(files[n % len(files)], args.max_pixels), range(count)):
                pass
            after = resource.getrusage(resource.RUSAGE_SELF)
            return after.ru_utime - busy.ru_utime + after.ru_stime - busy.ru_stime

        pipeline(2 * args.cores)  # imports, and the children's start
        bare(2 * args.cores)
        rounds = [in_turns({"pipeline": pipeline, "bare": bare}, args.files) for _ in range(args.rounds)]
    for pipe in pipes:
        pipe.send(0)
    told(rounds, args.files, kind + "s")


def in_turns(ways: dict[str, Callable[[int], float]], count: int) -> dict[str, Timed]:
    """Return the seconds and CPU seconds of each way."""
    spent = {way: [0.0, 0.0] for way in ways}
    for turn in range(TURNS):
        for way in list(ways) if turn % 2 else list(ways)[::-1]:
            started = time.perf_counter()
            spent[way][1] += ways[way](count // TURNS)
            spent[way][0] += time.perf_counter() - started
    return {way: (clock, busy) for way, (clock, busy) in spent.items()}


def told(rounds: list[dict[str, Timed]], count: int, what: str) -> None:
    """Print the medians."""
    first, second = rounds[0]
    for k, name in enumerate(("by the clock", "by CPU time")):
        rates = {way: statistics.median(count / one[way][k] for one in rounds) for way in rounds[0]}
        ratios = sorted(one[second][k] / one[first][k] for one in rounds)
        shown = ", ".join(f"{way} {rate:.1f}" for way, rate in rates.items())
        print(
            f"{what} a second {name}: {shown}; {first} / {second} {statistics.median(ratios):.3f} "
            f"({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )


def loader(max_pixels: int) -> MediaLoader:
    """As a run has it, with 8 frames of a video."""
    one = MediaLoader.of(MediaConfig(), load_spec("qwen2_5_vl"))
    budget = PixelBudget(max_pixels=max_pixels)
    return replace(one, image=budget, video=budget, sampling=FrameSampling(FRAMES))


def worker(pipe: Any, kind: Any, files: list[bytes], max_pixels: int) -> None:
    """Decode as many files as it is told, as a prepare worker; answer with the CPU seconds."""
    one = loader(max_pixels)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while count := pipe.recv():
            busy = cpu_seconds()
            for _ in pool.map(lambda n: one.load(kind, files[n % len(files)]), range(count)):
                pass
            pipe.send(cpu_seconds() - busy)


def bare_image(data: bytes, max_pixels: int) -> np.ndarray[Any, Any]:
    """Decode with Pillow alone."""
    with Image.open(io.BytesIO(data)) as opened:
        target = shrunk_size(*opened.size, PixelBudget(max_pixels=max_pixels))
        opened.draft("RGB", (target[0] * 2, target[1] * 2))
        return np.asarray(opened.convert("RGB").resize(target, Image.Resampling.LANCZOS, reducing_gap=3.0))


def bare_video(data: bytes, max_pixels: int) -> list[np.ndarray[Any, Any]]:
    """Decode with PyAV alone: seek before each frame, decode to it."""
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        total = stream.frames
        size = shrunk_size(stream.width, stream.height, PixelBudget(max_pixels=max_pixels))
        frames = []
        for index in np.linspace(0, total - 1, FRAMES).astype(int):
            at = int(index / stream.average_rate / stream.time_base)
            container.seek(at, stream=stream)
            found = next(
                frame for frame in container.decode(stream) if frame.pts is not None and frame.pts >= at
            )
            frames.append(found.reformat(*size, "rgb24", threads=1).to_ndarray())
        return frames


def draft(files: list[bytes], max_pixels: int, count: int, rounds: int) -> None:
    """Print what reduced-size decoding brings for JPEGs."""
    budget = PixelBudget(max_pixels=max_pixels)

    def decode(margin: float) -> Callable[[int], float]:
        def many(number: int) -> float:
            image._DRAFT_MARGIN = margin  # type: ignore[assignment]
            busy = time.process_time()
            for n in range(number):
                image.decode_image(files[n % len(files)], budget=budget, max_pixels=10**9)
            return time.process_time() - busy

        return many

    usual = image._DRAFT_MARGIN
    ways = {"reduced": decode(usual), "in full": decode(1e6)}
    told([in_turns(ways, count) for _ in range(rounds)], count, "JPEGs")


def make_videos(folder: Path) -> None:
    """Write 4 clips of 5 s, 1280 x 720, H.264 with a keyframe each 2 s."""
    rnd = np.random.default_rng(0)
    for n in range(4):
        ground = rnd.integers(0, 255, (90, 160, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
        out = io.BytesIO()
        with av.open(out, "w", format="mp4") as container:
            options = {"preset": "veryfast", "g": "60"}
            stream = container.add_stream("libx264", rate=Fraction(30), options=options)
            stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
            for k in range(150):
                picture = ground.copy()
                picture[:, k * 7 % 1200 : k * 7 % 1200 + 80] = (k, 90, 200)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        (folder / f"{n}").write_bytes(out.getvalue())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
