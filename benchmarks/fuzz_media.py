"""Damages every file of the corpus in seeded ways: the worker lives, and each input has its pixels or its code.

    python -m benchmarks.fuzz_media [--each 200] [--seed 0] [--match "*.mp4"]

Each file is cut, has bits flipped, bytes overwritten and pieces of other files spliced in, in turn. What must
hold: decoding ends with pixels or an ItemError within its time and memory, and the child that decodes is as
good afterwards as before. Prints how often each code came, the slowest input, and the most memory that the
child had.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import ItemError
from pipeline.media.image import decode_image
from pipeline.media.isolated import IsolatedDecoder, Limits
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import decode_video

CORPUS = Path(__file__).parent.parent / "tests" / "media" / "corpus"
LIMITS = Limits(seconds=20.0, memory=1536 * 2**20)
# What is decoded is held to this, so that a changed size in a header cannot fill the memory by right.
MAX_PIXELS = 20_000_000


def main() -> None:
    """Print what came of it; exit code 1 where an input had no code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=200, help="damaged copies of each file (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--match", default="*", help="only files of the corpus whose name matches")
    args = parser.parse_args()
    outcome = fuzz(args.each, args.seed, args.match)
    print(outcome.told())
    sys.exit(1 if outcome.uncoded else 0)


@dataclass
class Outcome:
    """What came of all inputs: how often each code, and where the extremes were."""

    codes: Counter[str] = field(default_factory=Counter)
    uncoded: list[str] = field(default_factory=list)
    children: int = 0
    peak: tuple[int, str] = (0, "")
    slowest: tuple[float, str] = (0.0, "")

    def told(self) -> str:
        """For people."""
        counts = ", ".join(f"{code} {count:,}" for code, count in self.codes.most_common())
        lines = [
            f"{sum(self.codes.values()):,} inputs: {counts}",
            f"children used: {self.children}; slowest {self.slowest[0]:.2f} s ({self.slowest[1]}); "
            f"most memory {self.peak[0] / 2**20:.0f} MiB ({self.peak[1]})",
        ]
        return "\n".join(lines + [f"NO CODE: {one}" for one in self.uncoded])


def fuzz(each: int, seed: int, match: str = "*") -> Outcome:
    """Decode `each` damaged copies of every matching file in a child process."""
    rows = json.loads(CORPUS.with_suffix(".json").read_text())
    others = [(CORPUS / row["file"]).read_bytes() for row in rows]
    isolated, outcome, pids = IsolatedDecoder(), Outcome(), set()
    try:
        for number, row in enumerate(rows):
            if not fnmatch.fnmatch(row["file"], match) or not others[number]:
                continue
            rnd = np.random.default_rng([seed, number])
            for copy, data in enumerate(damaged(others[number], others, each, rnd)):
                _one(isolated, row, f"{row['file']} #{copy}", data, outcome)
                pids.add(isolated.pid)
    finally:
        isolated.close()
    outcome.children = len(pids - {None})
    return outcome


def damaged(data: bytes, others: list[bytes], count: int, rnd: np.random.Generator) -> Iterator[bytes]:
    """Yield `count` damaged copies of a file, the ways in turn."""
    ways: list[Callable[[bytes, list[bytes], np.random.Generator], bytes]] = [
        cut,
        flipped,
        spliced,
        overwritten,
    ]
    first = int(rnd.integers(0, len(ways)))
    for number in range(first, first + count):
        yield ways[number % len(ways)](data, others, rnd)


def cut(data: bytes, _: list[bytes], rnd: np.random.Generator) -> bytes:
    """The file without its end."""
    return data[: rnd.integers(0, len(data))]


def flipped(data: bytes, _: list[bytes], rnd: np.random.Generator) -> bytes:
    """The file with 1 to 32 bits flipped, half of the time among its first 512 bytes."""
    changed = bytearray(data)
    reach = len(data) if rnd.random() < 0.5 else min(512, len(data))
    for at in rnd.integers(0, reach, 2 ** rnd.integers(0, 6)):
        changed[at] ^= 1 << int(rnd.integers(0, 8))
    return bytes(changed)


def spliced(data: bytes, others: list[bytes], rnd: np.random.Generator) -> bytes:
    """The file with a piece of any file of the corpus in place of one of its own."""
    other = others[rnd.integers(0, len(others))] or data
    start, stop = sorted(rnd.integers(0, len(data) + 1, 2))
    first, last = sorted(rnd.integers(0, len(other) + 1, 2))
    return data[:start] + other[first:last] + data[stop:]


def overwritten(data: bytes, _: list[bytes], rnd: np.random.Generator) -> bytes:
    """The file with up to 64 bytes in a row of zeros, ones or noise."""
    start, length = int(rnd.integers(0, len(data))), int(rnd.integers(1, 65))
    filler = [bytes(length), b"\xff" * length, rnd.bytes(length)][rnd.integers(0, 3)]
    return data[:start] + filler + data[start + length :]


def _one(isolated: IsolatedDecoder, row: dict[str, Any], name: str, data: bytes, outcome: Outcome) -> None:
    options: dict[str, Any] = {"budget": PixelBudget(), "max_pixels": MAX_PIXELS, "recover": True}
    if row["role"] == "video":
        options["sampling"] = FrameSampling(**row["sampling"])
    started = time.perf_counter()
    try:
        isolated.decode(decode_video if row["role"] == "video" else decode_image, data, options, LIMITS)
        outcome.codes["decoded"] += 1
    except ItemError as error:
        outcome.codes[error.code.value] += 1
        if "the decoder failed" in error.reason:  # an exception that the decoder should have turned into a code
            outcome.uncoded.append(f"{name}: {error.reason}")
    outcome.slowest = max(outcome.slowest, (time.perf_counter() - started, name))
    outcome.peak = max(outcome.peak, (peak_bytes(isolated.pid), name))


def peak_bytes(pid: int | None) -> int:
    """The most memory that a process has had; 0 for none."""
    if pid is None:
        return 0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    main()
