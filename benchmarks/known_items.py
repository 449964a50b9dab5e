"""What known items cost: planning and re-running a finished million, and looking up among ten millions.

python -m benchmarks.known_items --items 1000000 --entries 10000000
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pipeline.config_file import load_config
from pipeline.plan import Plan, make_plan
from pipeline.results.index import Index, result_files, version_of
from pipeline.results.keys import Keys
from pipeline.results.lineage import write_records
from pipeline.results.schema import result_schema
from pipeline.storage import Storage

BATCH = 32


def main() -> None:
    """Make an output in which every item is answered, then time what a user would do with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--child", choices=["index", "look-up"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print((_load_index if arguments.child == "index" else _look_up)(arguments.folder))
        return
    with tempfile.TemporaryDirectory() as folder:
        config = _make_output(Path(folder), arguments.items)
        print(f"{arguments.items:,} items, all answered:")
        for command in ("plan", "run"):
            framescribe = [sys.executable, "-m", "pipeline.cli", command, "--config", str(config)]
            seconds, mib, output = _measured(framescribe)
            print(
                f"  framescribe {command:<5} {seconds:6.1f} s  {mib:6.0f} MiB  {output.splitlines()[-1][:60]}"
            )
        child = [sys.executable, "-m", "benchmarks.known_items", "--folder", folder]
        _, mib, output = _measured([*child, "--child", "index"])
        print(f"  read into an index, saved, read again: {output.strip()}, {mib:.0f} MiB")
        large = Path(folder) / "large"
        _make_large(large, arguments.entries)
        look_up = ["--folder", str(large), "--child", "look-up"]
        _, mib, output = _measured([sys.executable, "-m", "benchmarks.known_items", *look_up])
        print(f"{arguments.entries:,} entries: {output.strip()}, {mib:.0f} MiB")


def _make_output(folder: Path, items: int) -> Path:
    ids = pa.array([f"item-{i:09}" for i in range(items)])
    images = pa.array([f"s3://bucket/pictures/{i % 1000:03}/{i:09}.jpg" for i in range(items)])
    pq.write_table(pa.table({"id": ids, "image": images}), folder / "m.parquet", row_group_size=100_000)
    written = {
        "manifest": {"uri": str(folder / "m.parquet")},
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe this image.",
        "engine": {"kind": "echo"},
        "output": {"uri": str(folder / "out")},
    }
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(written))
    plan = make_plan(load_config(path))
    write_records(plan.storage, plan.ledger.folder, plan.recipe.as_dict(), plan.record)
    numbers = np.random.default_rng(1)
    for work in plan.work:
        rows = _rows(plan, ids, work.shard.start, work.shard.stop, numbers)
        plan.ledger.put_batch(work.shard.name, (work.shard.start, work.shard.stop), rows)
        plan.ledger.finish(work.shard.name, (work.shard.start, work.shard.stop), _Nobody())
    return path


class _Nobody:
    """No row waits for another one here."""

    def outcomes(self, uuids: Any) -> list[None]:
        return [None for _ in uuids]

    known_media = claim = settle = outcomes


def _rows(plan: Plan, ids: pa.Array, start: int, stop: int, numbers: np.random.Generator) -> pa.Table:
    count = stop - start
    uuids = _uuids(numbers, 3 * count)
    given = {
        "id": ids[start:stop],
        "task": pa.array(["caption"] * count),
        "status": pa.array(["ok"] * count),
        "text": pa.array([f"A picture of the thing number {i} among many others." for i in range(start, stop)]),
        "attempts": pa.array(np.ones(count, np.int32)),
        "item_uuid": uuids[:count],
        "media_uuids": pa.array([[uuid] for uuid in uuids[count : 2 * count].to_pylist()]),
        "media_versions": pa.array([[uuid] for uuid in uuids[2 * count :].to_pylist()]),
        "manifest": pa.array([plan.manifest.files[0].name] * count),
        "row": pa.array(range(start, stop), pa.int64()),
    }
    schema = result_schema(pa.schema([]))
    return pa.table([given.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema)


def _uuids(numbers: np.random.Generator, count: int) -> pa.Array:
    text = numbers.bytes(16 * count).hex()
    each = (text[i : i + 32] for i in range(0, len(text), 32))
    return pa.array([f"{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}" for u in each])


def _measured(command: list[str]) -> tuple[float, float, str]:
    """Wall seconds, peak MiB of the process, and what it printed."""
    started = time.perf_counter()
    wrapped = f"import resource, subprocess, sys; subprocess.run({command!r}, check=True); "
    wrapped += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", wrapped], capture_output=True, text=True, check=True)
    return time.perf_counter() - started, int(done.stderr.split()[-1]) / 1024, done.stdout


def _timed(step: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = step()
    return time.perf_counter() - started, found


def _load_index(folder: str) -> str:
    (recipe,) = Path(folder).glob("out/recipe=*")
    first, index = _timed(lambda: Index.load(Storage(), str(recipe)))
    saving, _ = _timed(lambda: index.save(Storage()))
    second, _ = _timed(lambda: Index.load(Storage(), str(recipe)))
    return f"{first:.1f} s, {saving:.1f} s, {second:.1f} s"


def _make_large(folder: Path, entries: int) -> None:
    """An index of random items that all claim to stand in one file."""
    raw = np.random.default_rng(2).integers(0, 256, (entries, 16), np.uint8)
    items, order = Keys.sorted_from(raw)
    nothing, _ = Keys.sorted_from(raw[:0])
    place = np.arange(entries, dtype=np.int32)[order]
    storage = Storage()
    storage.put(f"{folder}/a.parquet", b"not read: the index covers it")
    covered = {name: version_of(info) for name, info in result_files(storage, str(folder))}
    Index(str(folder), list(covered), covered, items, place * 0, place, nothing, raw[:0]).save(storage)
    np.save(folder / "asked.npy", raw[:: max(1, entries // 100_000)])


def _look_up(folder: str) -> str:
    loading, index = _timed(lambda: Index.load(Storage(), folder))
    asked = [_spelled(one) for one in np.load(f"{folder}/asked.npy")]
    batches = [asked[i : i + BATCH] for i in range(0, len(asked), BATCH)]
    seconds, found = _timed(lambda: [index.find(batch) for batch in batches])
    if not all(place for batch in found for place in batch):
        raise RuntimeError("an item was not found")
    return f"{1e6 * seconds / len(asked):.1f} µs a look-up in batches of {BATCH}, {loading:.1f} s to load"


def _spelled(raw: Any) -> str:
    text = raw.tobytes().hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


if __name__ == "__main__":
    main()
