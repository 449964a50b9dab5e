"""Configurations of the end-to-end tests: the demo model on vLLM's CPU build, or the echo engine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config import RunConfig
from pipeline.config_file import LoadedConfig, load_config
from pipeline.storage import Storage
from tests.conftest import REPOSITORY


def quickstart(*overrides: str) -> LoadedConfig:
    """`conf/quickstart.yaml` with overrides: a real engine."""
    return load_config(REPOSITORY / "conf/quickstart.yaml", overrides)


def echo(manifest: object, output: object, **parts: dict[str, Any]) -> LoadedConfig:
    """A run of the echo engine; `parts` are added to the parts of its configuration."""
    config = {
        "manifest": {"uri": str(manifest)},
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe this image.",
        "engine": {"kind": "echo", **parts.pop("engine", {})},
        "output": {"uri": str(output), "batch_rows": 8, **parts.pop("output_parts", {})},
        **parts,
    }
    return LoadedConfig(RunConfig.model_validate(config), config)


def kill_all(job: subprocess.Popen[bytes], family: list[psutil.Process]) -> None:
    """SIGKILL the job's process group, and what of its family is in none: a worker that was just starting."""
    os.killpg(job.pid, signal.SIGKILL)
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    job.wait()
    psutil.wait_procs(family, timeout=30)


def results(output: str, storage: Storage | None = None) -> pa.Table:
    """All finished rows below an output, in the order of the manifest."""
    storage = storage or Storage()
    shards = [f.uri for f in storage.find(output) if re.search(r"/recipe=\w+/[^/]+\.parquet$", f.uri)]
    tables = [pq.read_table(pa.BufferReader(storage.read(uri))) for uri in shards]
    return pa.concat_tables(tables).sort_by(
        [("manifest", "ascending"), ("row", "ascending"), ("task", "ascending")]
    )


def batch_files(output: Path) -> list[Path]:
    """The batches that are durable but not yet part of a finished shard."""
    return [path for path in output.glob("recipe=*/.batches/*/*.parquet") if not path.name.startswith(".")]
