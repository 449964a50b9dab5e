"""What a render worker spends on an image: in the image processor, and on handing its tensors on.

    python -m benchmarks.render_workers [--workers 2]

So many processes at once, as they are by default and in the engine's own environment (`LEAN`), each with
Qwen2.5-VL's image processor on 1024 x 768 pixels; the tensor (9.4 MB of bfloat16) is then shared as torch does
it for another process, and put into a parcel as the pipeline does it. Medians over the processes, of CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.dummy_model import make_model
from pipeline.engine.environment import LEAN

SECONDS = 2.0
START_SECONDS = 20.0


def main() -> None:
    """Run the workers in both environments; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        folder, start = arguments.child
        print(json.dumps(worker(Path(folder), float(start))))
        return
    print(f"{arguments.workers} workers; CPU ms an image (of these in the kernel)")
    with tempfile.TemporaryDirectory() as folder:
        make_model("256m", Path(folder))
        for name, environment in (("as by default", {"OMP_NUM_THREADS": "1"}), ("lean", LEAN)):
            found = in_parallel(arguments.workers, Path(folder), environment)
            told = (f"{what} {used:.1f} ({kernel:.1f})" for what, (used, kernel) in found.items())
            print(f"{name:<14} " + "   ".join(told))


def in_parallel(workers: int, model: Path, environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """The medians of what so many workers measure at the same time."""
    command = [sys.executable, "-m", "benchmarks.render_workers", "--child", str(model)]
    command.append(str(time.time() + START_SECONDS))
    clean = {name: value for name, value in os.environ.items() if name not in LEAN}
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env={**clean, **environment}) for _ in range(workers)
    ]
    found = [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]
    return {
        what: (
            statistics.median(one[what][0] for one in found),
            statistics.median(one[what][1] for one in found),
        )
        for what in found[0]
    }


def worker(model: Path, start: float) -> dict[str, tuple[float, float]]:
    """CPU and kernel milliseconds an image, of each step, from the time `start` on."""
    import numpy as np
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor

    from pipeline.engine.parcel import open_parcel, pack_parcel

    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy("file_system")
    processor = AutoImageProcessor.from_pretrained(model)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (768, 1024, 3), np.uint8))

    def processed() -> torch.Tensor:
        found = processor(images=[image], return_tensors="pt", min_pixels=784, max_pixels=1_003_520)
        return found["pixel_values"].to(torch.bfloat16)

    tensor = processed()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        steps: dict[str, Callable[[], object]] = {
            "processor": processed,
            "torch's sharing": lambda: tensor.clone().share_memory_(),
            "parcel": lambda: open_parcel(pack_parcel(tensor, Path(folder))),
        }
        time.sleep(max(0.0, start - time.time()))
        return {name: _cost(step) for name, step in steps.items()}


def _cost(step: Callable[[], object]) -> tuple[float, float]:
    begin, before, count = time.monotonic(), os.times(), 0
    while time.monotonic() - begin < SECONDS:
        step()
        count += 1
    after = os.times()
    kernel = after.system - before.system
    return 1000 * (after.user - before.user + kernel) / count, 1000 * kernel / count


if __name__ == "__main__":
    main()
