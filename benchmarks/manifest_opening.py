"""What a long manifest costs the driver: seconds and peak memory to open it and to cut it into shards.

    python -m benchmarks.manifest_opening [--rows 2000000]

Each row has an id, a URI and a caption of some 100 characters. Each format has a process of its own; beside it
stands what reading the same file's bytes takes, without looking at them.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SHARD_ROWS = 4096
FORMATS = ("parquet", "jsonl", "csv")


def main() -> None:
    """Make a manifest of each format, open each in a fresh process, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(Path(arguments.child))))
        return
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            path = Path(folder) / f"manifest.{form}"
            write(path, arguments.rows)
            command = [sys.executable, "-m", "benchmarks.manifest_opening", "--child", str(path)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{form:8} {found['rows']:,} rows, {path.stat().st_size >> 20:,} MiB: "
                f"opened in {found['open']:.2f} s ({found['cpu']:.2f} s of CPU time), "
                f"cut into {found['shards']:,} shards in {found['cut']:.2f} s; "
                f"memory {found['idle']:.0f} MiB before, {found['peak']:.0f} at the peak; the manifest for "
                f"workers {found['workers']:,} bytes; first shard read in {found['first']:.2f} s; "
                f"only reading the bytes {found['bare']:.2f} s",
                flush=True,
            )
            path.unlink()


def write(path: Path, rows: int) -> None:
    """A manifest of so many rows."""
    lines = records(rows)
    schema = pa.schema([(name, pa.string()) for name in ("id", "image", "caption")])
    with path.open("wb") as file:
        if path.suffix == ".jsonl":
            file.writelines(f"{json.dumps(line)}\n".encode() for line in lines)
            return
        make = pq.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
        with make(file, schema) as writer:
            while piece := list(islice(lines, 100_000)):
                writer.write_table(pa.Table.from_pylist(piece, schema))


def records(rows: int) -> Iterator[dict[str, str]]:
    """Rows as a crawl has them."""
    for n in range(rows):
        caption = f'A "picture" of number {n}, one of many, which someone once put on a page with these words.'
        uri = f"https://pictures.example/{n * 7919 % 997}/{n}.jpg"
        yield {"id": f"{n:012d}", "image": uri, "caption": caption}


def measure(path: Path) -> dict[str, float]:
    """Open and cut one manifest, in this process."""
    from pipeline.config import ManifestConfig
    from pipeline.manifest import open_manifest, read, shards
    from pipeline.storage import Storage

    started = time.perf_counter()
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass
    bare = time.perf_counter() - started
    idle = _peak_mib()
    started, cpu = time.perf_counter(), time.process_time()
    manifest = open_manifest(Storage(), ManifestConfig(uri=str(path), keep=["caption"]))
    opened, cpu = time.perf_counter(), time.process_time() - cpu
    cut = shards(manifest, SHARD_ROWS)
    ended = time.perf_counter()
    workers = manifest.for_workers()
    (table,) = read(Storage(), workers, cut[0], [(cut[0].start, cut[0].stop)])
    assert table["id"][0].as_py() == "000000000000"
    return {
        "rows": manifest.rows, "open": opened - started, "cpu": cpu, "cut": ended - opened, "shards": len(cut),
        "idle": idle, "peak": _peak_mib(), "workers": len(pickle.dumps(workers)), "bare": bare,
        "first": time.perf_counter() - ended,
    }  # fmt: skip


def _peak_mib() -> float:
    # Not getrusage, which counts the parent's memory too, from before the child was started.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
