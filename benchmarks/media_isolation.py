"""What isolation costs: images a second decoded in a child process, against the same in the worker itself.

    python -m benchmarks.media_isolation [--images 2000] [--rounds 5]

The images are JPEG, PNG and WebP in turn, about 1 megapixel each, made from noise and waves with a seed. Each
way has a process of its own, as fresh as a Ray worker; they take turns of 50 images, so that what else runs on
the machine meets all alike. Rates are medians over the rounds; CPU time is of worker and child together.

`tuned` is in-process decoding with the child's settings of glibc's malloc: what isolation alone costs. A
worker cannot have these for itself, since they are read when a process starts, and others start Ray's.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline.config import MediaConfig
from pipeline.media import child, isolated
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec

TURN = 50
KINDS = {"JPEG": {"quality": 90}, "PNG": {}, "WEBP": {"quality": 85}}
WAYS = ("in process", "tuned", "isolated")


def main() -> None:
    """Print the rates and their ratios, by the clock and by CPU time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="qwen2_5_vl", help="whose limits the images are shrunk to")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker[0], Path(args.worker[1]), args.model)
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        make(Path(folder))
        workers = [stack.enter_context(Worker.started(way, folder, args.model)) for way in WAYS]
        rates = [one_round(workers, args.images) for _ in range(args.rounds)]
    for kind, what in enumerate(("by the clock", "by CPU time")):
        told = {way: statistics.median(rate[way][kind] for rate in rates) for way in WAYS}
        print(what + ":", ", ".join(f"{way} {rate:.1f} images/s" for way, rate in told.items()))
        for base in WAYS[:2]:
            ratios = sorted(rate["isolated"][kind] / rate[base][kind] for rate in rates)
            print(f"  isolated / {base}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")


@dataclass
class Worker:
    """A process that decodes so many images for each line that it is sent."""

    way: str
    process: subprocess.Popen[str]

    @classmethod
    def started(cls, way: str, folder: str, model: str) -> Worker:
        tuned = child.ENVIRONMENT if way == "tuned" else {}
        command = [sys.executable, "-m", "benchmarks.media_isolation", "--worker", way, folder]
        process = subprocess.Popen(
            [*command, "--model", model],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **tuned},
        )
        worker = cls(way, process)
        worker.decode(0, 6)  # imports, and the child's start
        return worker

    def decode(self, start: int, stop: int) -> tuple[float, float]:
        """The seconds and the CPU seconds that images `start` to `stop` took."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{start} {stop}\n")
        self.process.stdin.flush()
        seconds, busy = self.process.stdout.readline().split()
        return float(seconds), float(busy)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def one_round(workers: list[Worker], images: int) -> dict[str, tuple[float, float]]:
    """Return each way's images a second, by the clock and by CPU time."""
    spent = {worker.way: [0.0, 0.0] for worker in workers}
    for turn, start in enumerate(range(0, images, TURN)):
        order = workers[turn % len(workers) :] + workers[: turn % len(workers)]
        for worker in order:
            for kind, seconds in enumerate(worker.decode(start, min(images, start + TURN))):
                spent[worker.way][kind] += seconds
    return {way: (images / clock, images / busy) for way, (clock, busy) in spent.items()}


def work(way: str, folder: Path, model: str) -> None:
    """Decode on request, as a worker."""
    loader = MediaLoader.of(MediaConfig(), load_spec(model))
    loader = loader if way == "isolated" else replace(loader, limits=None)
    files = [path.read_bytes() for path in sorted(folder.iterdir())]
    pool = ThreadPoolExecutor(isolated.AT_ONCE if way == "isolated" else 1)
    for line in sys.stdin:
        start, stop = map(int, line.split())
        started, busy = time.perf_counter(), cpu_seconds()
        for _ in pool.map(lambda number: loader.load("image", files[number % len(files)]), range(start, stop)):
            pass
        print(time.perf_counter() - started, cpu_seconds() - busy, flush=True)


def cpu_seconds() -> float:
    """CPU time of this process and of the decoding child, which `resource` counts only once it has ended."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    if pid := isolated._decoder.pid:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def make(folder: Path) -> None:
    """Write 30 files of 0.8 to 1.2 megapixels, the kinds in turn."""
    rnd = np.random.default_rng(0)
    for n in range(30):
        width, height = ((1024, 1024), (1280, 960), (960, 840))[n // 3 % 3]
        y, x = np.mgrid[:height, :width]
        waves = 127 + 90 * np.sin(x / (20 + n)) * np.cos(y / 31)
        pixels = np.stack([waves, 255 - waves, (x // 50 + y // 70) % 2 * 200], axis=-1)
        pixels += rnd.integers(-6, 6, pixels.shape)
        kind, options = list(KINDS.items())[n % 3]
        out = io.BytesIO()
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(out, kind, **options)
        (folder / f"{n:02}").write_bytes(out.getvalue())


if __name__ == "__main__":
    main()
