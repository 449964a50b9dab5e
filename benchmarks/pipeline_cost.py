"""What the pipeline itself costs: items/s, CPU-seconds per 1,000 items and the driver's peak memory, with an
engine that computes nothing.

    python -m benchmarks.pipeline_cost --items 10000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from demo.make_dataset import make_dataset

PICTURES = 300


def main() -> None:
    """Make a manifest of `--items` rows over 300 small pictures, run it, and print one line of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--batch-rows", type=int, default=32)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(Path(arguments.child), arguments.batch_rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        _make_manifest(Path(folder), arguments.items)
        command = [sys.executable, "-m", "benchmarks.pipeline_cost", "--child", folder]
        command += ["--batch-rows", str(arguments.batch_rows)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = _CpuWatch(child.pid)
        output, _ = child.communicate()
        cpu = watch.stop()
        if child.returncode:
            sys.exit(child.returncode)
        found = json.loads(output.splitlines()[-1])
    print(
        f"items {arguments.items:>8,} in batches of {arguments.batch_rows}  {found['rate']:8.1f} items/s  "
        f"{1000 * cpu / arguments.items:6.2f} CPU-s per 1,000 items  "
        f"driver peak {watch.private_mib:6.0f} MiB of its own "
        f"({found['driver_mib']:.0f} with what it shares; {found['idle_mib']:.0f} of that before the manifest)"
    )


def _make_manifest(folder: Path, items: int) -> None:
    source = make_dataset(folder / "pictures", shapes=PICTURES, texts=0, videos=0, seed=1)
    images = [f"pictures/{json.loads(line)['image']}" for line in source.read_text("utf-8").splitlines()]
    rows = {
        "id": [str(i) for i in range(items)],
        "image": [images[i % PICTURES] for i in range(items)],
        "question": [f"What is in picture {i}?" for i in range(items)],
    }
    pq.write_table(pa.table(rows), folder / "manifest.parquet", row_group_size=50_000)


def _child(folder: Path, batch_rows: int) -> None:
    import ray

    from pipeline.config import RunConfig
    from pipeline.config_file import LoadedConfig
    from pipeline.run import run

    config = {
        "manifest": {"uri": str(folder / "manifest.parquet")},
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe this image.",
        "engine": {"kind": "echo"},
        "output": {"uri": str(folder / "out"), "batch_rows": batch_rows},
    }
    ray.init(log_to_driver=False, logging_level="ERROR")
    idle = _peak_mib()
    summary = run(LoadedConfig(RunConfig.model_validate(config), config))
    assert summary.ok == summary.rows, summary
    print(json.dumps({"rate": summary.rows_per_second, "driver_mib": _peak_mib(), "idle_mib": idle}))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _CpuWatch:
    """Adds up the CPU seconds of a process and all its descendants, dead ones included (sampled).

    `private_mib` is the most memory that the process has had to itself: what it shares with Ray's object store
    is not its own, and grows with every page that it has once looked at.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._seconds: dict[int, float] = {}
        self.private_mib = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """The CPU seconds so far."""
        self._stopped.set()
        self._thread.join()
        return sum(self._seconds.values())

    def _watch(self) -> None:
        while not self._stopped.is_set():
            try:
                self.private_mib = max(self.private_mib, self._root.memory_full_info().uss / 2**20)
                for process in [self._root, *self._root.children(recursive=True)]:
                    times = process.cpu_times()
                    self._seconds[process.pid] = times.user + times.system
            except psutil.NoSuchProcess:
                pass
            time.sleep(0.25)


if __name__ == "__main__":
    main()
