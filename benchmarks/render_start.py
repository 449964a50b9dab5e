"""What it takes to start render workers: each loading for itself, and forked from one that has loaded.

    python -m benchmarks.render_start [--workers 8]

Wall time until each has rendered an image, CPU seconds, and memory (shared pages counted once).
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from PIL import Image

from benchmarks.dummy_model import make_model
from benchmarks.made_media import prompt_about
from pipeline.engine.environment import LEAN, started_with
from pipeline.engine.parcel import open_parcel, pack_parcel
from pipeline.engine.parcel_folder import ParcelFolder
from pipeline.engine.render_processes import load_and_fork

ARGUMENTS = {"max_model_len": 2048, "load_format": "dummy", "limit_mm_per_prompt": {"image": 1, "video": 0}}


def main() -> None:
    """Start both, one after the other, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    workers = parser.parse_args().workers
    with tempfile.TemporaryDirectory() as folder:
        arguments = {**ARGUMENTS, "model": str(make_model("3b", Path(folder)))}
        for name, forks in (("each for itself", [1] * workers), ("forks of one", [workers])):
            wall, cpu, memory = _measure(arguments, forks)
            print(
                f"{workers} workers, {name:<16} {wall:6.1f} s   {cpu:6.1f} CPU-s   {memory:8.0f} MiB",
                flush=True,
            )


def _measure(arguments: dict[str, Any], forks: list[int]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and MiB of first processes with so many forks each."""
    prompt = {
        "prompt": prompt_about("<|image_pad|>"),
        "multi_modal_data": {"image": [Image.new("RGB", (1024, 768))]},
    }
    context, began = multiprocessing.get_context("spawn"), time.perf_counter()
    controls, links, parcels = [], [], ParcelFolder()
    folder = parcels.path
    with started_with(LEAN):
        for count in forks:
            ours, theirs = context.Pipe()
            pairs = [context.Pipe() for _ in range(count)]
            ends = [end for _, end in pairs]
            context.Process(target=load_and_fork, args=(arguments, theirs, ends, folder), daemon=True).start()
            for end in (theirs, *ends):
                end.close()
            controls.append(ours)
            links += [link for link, _ in pairs]
    for link in links:
        link.send(pack_parcel(prompt, folder))
    for link in links:
        rendered, refusal = link.recv()
        assert rendered is not None, refusal
        open_parcel(rendered)
    wall = time.perf_counter() - began
    processes = psutil.Process().children(recursive=True)
    cpu = sum(sum(process.cpu_times()[:2]) for process in processes)
    memory = sum(process.memory_full_info().pss for process in processes) / 2**20
    for control in controls:
        control.close()
    psutil.wait_procs(processes, timeout=30)
    return wall, cpu, memory


if __name__ == "__main__":
    main()
