"""One replica, tensor parallel over two GPUs, and two replicas, through the pipeline; then two kills.

    python -m benchmarks.two_gpus --size 7b --images 2000          # two GPUs
    python -m benchmarks.two_gpus --size tiny --images 60 --out 8 --cpu   # the same steps, without a GPU

For each: images/s after start, the first row, what the GPUs did, the rate with everything rendered beforehand,
and the summary's sentence about the bottleneck. TP=2's answers are compared with TP=1's. At last two replicas
lose an engine's core, and a tensor-parallel engine one of its workers, in the middle of a run: rows are
counted, and the longest time in which no row became durable is told.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks import gpu_throughput
from benchmarks.dummy_model import TEXT, make_model, make_weights
from benchmarks.gpu_throughput import RESULT
from benchmarks.made_media import make_pictures
from pipeline.engine.environment import LEAN

SETUPS = {"1 x TP1": (1, 1), "1 x TP2": (1, 2), "2 x TP1": (2, 1)}
CPU: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 256 * 2**20}
BEFOREHAND = "beforehand"
KILLS = {"core": ("2 x TP1", "VLLM::EngineCore"), "worker": ("1 x TP2", "VLLM::Worker")}


def main() -> None:
    """Each setup and each kill in a process of its own; a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(TEXT), default="7b")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--out", type=int, default=64, help="output tokens")
    parser.add_argument("--cpu", action="store_true", help="on vLLM's CPU build, with a size that fits it")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        folder, setup, kill = arguments.child
        print(RESULT + json.dumps(child(Path(folder), setup, kill, arguments.out, arguments.cpu)), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_weights(make_model(arguments.size, Path(folder) / "model"))
        make_pictures(Path(folder) / "media", arguments.images)
        for setup in SETUPS:
            show(
                setup, in_child(arguments, folder, setup) | {"beforehand": beforehand(arguments, folder, setup)}
            )
        print("TP1 and TP2 answer the same in", agreement(Path(folder)))
        for kill, (setup, _) in KILLS.items():
            show(f"{setup}, a {kill} killed", in_child(arguments, folder, setup, kill))


def in_child(
    arguments: argparse.Namespace, folder: str, setup: str, kill: str = "", gpu: int | None = None
) -> dict[str, Any]:
    """What the run in a new process found, which sees that GPU only where `gpu` is given and several run."""
    environment = {"CUDA_VISIBLE_DEVICES": str(gpu)} if gpu is not None and SETUPS[setup][0] > 1 else {}
    environment |= LEAN if kill == BEFOREHAND else {}  # as the pipeline's engines
    command = [sys.executable, "-m", "benchmarks.two_gpus", "--child", folder, setup, kill]
    command += ["--out", str(arguments.out), *(["--cpu"] if arguments.cpu else [])]
    found = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **environment}
    )
    told = [line for line in found.stdout.splitlines() if line.startswith(RESULT)]
    if found.returncode or not told:
        return {"failed": found.returncode}
    return dict(json.loads(told[-1].removeprefix(RESULT)))


def beforehand(arguments: argparse.Namespace, folder: str, setup: str) -> float | None:
    """Images/s with everything rendered before the clock starts, of all the setup's engines at once."""
    engines = SETUPS[setup][0]
    with ThreadPoolExecutor(engines) as pool:
        found = pool.map(lambda gpu: in_child(arguments, folder, setup, BEFOREHAND, gpu), range(engines))
        rates = [one.get("rate") for one in found]
    return None if None in rates else round(sum(rates), 2)


def show(name: str, found: dict[str, Any]) -> None:
    """One line for the figures, one for each sentence."""
    print(name)
    for what, value in found.items():
        print(f"    {what:<22} {value}", flush=True)


def child(folder: Path, setup: str, kill: str, out: int, cpu: bool) -> dict[str, Any]:
    """Run the setup; kill what is to be killed when a third of the rows is durable."""
    gpu_throughput.ARGUMENTS["load_format"] = "auto"
    if cpu:
        gpu_throughput.ARGUMENTS.update(CPU)
        os.environ |= {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    replicas, tensor_parallel = SETUPS[setup]
    if kill == BEFOREHAND:
        gpu_throughput.ARGUMENTS["tensor_parallel_size"] = tensor_parallel
        if tensor_parallel > 1:
            gpu_throughput.ARGUMENTS["distributed_executor_backend"] = "mp"
        return gpu_throughput.VARIANTS["prerendered"](folder, out, 1 if cpu else 8)
    output = output_of(folder, setup, kill)
    watcher = Watcher(output, len(list((folder / "media").iterdir())) // 3 if kill else None, kill)
    watcher.start()
    engine = {"replicas": replicas, "tensor_parallel_size": tensor_parallel}
    summary = gpu_throughput.run_pipeline(folder, out, output, engine | ({"render_workers": 1} if cpu else {}))
    watcher.stop()
    return {
        "images/s": summary.rows_per_second,
        "rows, failed": (summary.rows, summary.failed),
        "first row, s": summary.first_answer_seconds,
        "engine start, s": summary.engine_start_seconds,
        "restarts": summary.engine_restarts,
        "longest pause, s": watcher.longest_pause(),
        "gpu": [replica.get("gpu_utilisation") for replica in summary.replicas.values()],
        "output tokens of each": [int(replica["output_tokens"]) for replica in summary.replicas.values()],
        "bottleneck": summary.bottleneck,
    }


class Watcher(threading.Thread):
    """Notes when batches become durable, and kills a process when so many rows are."""

    def __init__(self, output: Path, kill_at: int | None, victim: str) -> None:
        super().__init__(daemon=True)
        self._output, self._kill_at, self._victim = output, kill_at, victim
        self._stopped = threading.Event()
        self._times: list[tuple[float, int]] = []

    def run(self) -> None:
        """Look four times a second."""
        while not self._stopped.wait(0.25):
            rows = sum(1 for _ in self._output.glob("recipe=*/**/*.parquet"))
            if not self._times or rows > self._times[-1][1]:
                self._times.append((time.monotonic(), rows))
            if self._kill_at is not None and 32 * rows >= self._kill_at:
                self._kill_at = None
                kill_one(KILLS[self._victim][1])

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self.join()

    def longest_pause(self) -> float:
        """Seconds between one batch and the next."""
        times = [when for when, rows in self._times if rows]
        return round(max((later - earlier for earlier, later in pairwise(times)), default=0.0), 1)


def kill_one(title: str) -> None:
    """SIGKILL the first process of this run whose title says that it is one."""
    for process in psutil.Process().children(recursive=True):
        try:
            if title in process.name() or title in " ".join(process.cmdline()):
                process.kill()
                return
        except psutil.Error:
            continue
    raise RuntimeError(f"no {title} to kill")


def agreement(folder: Path) -> str:
    """In how many rows the texts of TP1 and TP2 are equal, and how far they are on average."""
    one, two = (texts(output_of(folder, setup, "")) for setup in ("1 x TP1", "1 x TP2"))
    same = sum(text == two.get(id) for id, text in one.items())
    shared = [alike(text, two.get(id) or "") for id, text in one.items()]
    return f"{same} of {len(one)} rows; on average in their first {100 * statistics.mean(shared):.0f} %"


def alike(one: str, two: str) -> float:
    """The part of the first text, from its beginning on, that the second has too."""
    differing = (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    return next(differing, min(len(one), len(two))) / max(1, len(one))


def output_of(folder: Path, setup: str, kill: str) -> Path:
    """Where a run of the setup puts its rows."""
    return folder / f"out {setup} {kill}".strip().replace(" ", "-")


def texts(output: Path) -> dict[str, str | None]:
    """The texts of an output by id."""
    files = sorted(output.glob("recipe=*/*.parquet"))
    found = [row for file in files for row in pq.read_table(file, columns=["id", "text"]).to_pylist()]
    return {row["id"]: row["text"] for row in found}


if __name__ == "__main__":
    main()
