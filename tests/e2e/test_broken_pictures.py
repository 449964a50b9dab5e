"""300 pictures, 20 of them broken, on the real engine: locally, killed half-way, and through a job on S3."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.storage import Storage
from tests.conftest import REPOSITORY, S3_SECRET, S3Server, free_port
from tests.e2e.broken_pictures import Dataset, make_broken
from tests.e2e.configurations import batch_files, kill_all, results

BIN = Path(sys.executable).parent
PIECES = ["output.shard_rows=64", "output.batch_rows=16"]
SAME_COLUMNS = ["id", "task", "status", "text", "error_code", "item_uuid", "media_uuids", "row", "answer"]


def command(manifest: object, output: object, *overrides: str) -> list[str | Path]:
    job: list[str | Path] = [sys.executable, "jobs/caption_dataset.py", "--config", "conf/quickstart.yaml"]
    return [*job, f"manifest.uri={manifest}", f"output.uri={output}", *PIECES, *overrides]


def finished(job: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """The job's end, with what it printed."""
    both = {**os.environ, **environment}
    return subprocess.run(job, check=False, cwd=REPOSITORY, capture_output=True, text=True, env=both)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_broken(tmp_path_factory.mktemp("broken"))


@pytest.fixture(scope="module")
def undisturbed(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """What a run gives that nothing happens to."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    done = finished(command(dataset.manifest, output))
    assert done.returncode == 0, done.stderr
    assert "280 ok, 20 failed" in done.stdout
    table = results(str(output))
    again = finished(command(dataset.manifest, output))
    assert "nothing to do: all 300 rows" in again.stdout
    assert results(str(output)).equals(table)
    return table


def test_280_are_right_and_20_have_their_own_code(dataset: Dataset, undisturbed: pa.Table) -> None:
    rows = undisturbed.to_pylist()
    assert Counter(row["status"] for row in rows) == {"ok": 280, "failed": 20}
    assert {row["id"]: row["error_code"] for row in rows if row["status"] == "failed"} == dataset.codes
    assert all(row["error"] and row["text"] is None for row in rows if row["status"] == "failed")
    right = sum(row["text"] == dataset.answers.get(row["id"]) for row in rows)
    assert right >= 0.99 * len(dataset.answers)


@dataclass(frozen=True)
class Killed:
    """A run that was killed: which items were durable then, and the output that the next run finished."""

    durable: set[str]
    asked_before: set[str]
    asked_after: list[str]
    table: pa.Table


@pytest.fixture(scope="module")
def killed(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    output = folder / "out"
    first = command(
        dataset.manifest, output, f"engine.request_log={folder}/log-1", "engine.batches_in_flight=2"
    )
    job = subprocess.Popen(first, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.DEVNULL)
    family = _wait_for_batches(job, output, count=4)
    kill_all(job, family)
    durable = _item_uuids(output)
    assert 4 * 16 * 0.8 < len(durable) < 280
    second = command(dataset.manifest, output, f"engine.request_log={folder}/log-2")
    done = finished(second)
    assert done.returncode == 0, done.stderr
    assert "were done before" in done.stdout
    assert not batch_files(output)
    return Killed(durable, set(_asked(folder / "log-1")), _asked(folder / "log-2"), results(str(output)))


def test_a_killed_run_ends_with_the_same_rows(undisturbed: pa.Table, killed: Killed) -> None:
    assert killed.table.select(SAME_COLUMNS).equals(undisturbed.select(SAME_COLUMNS))


def test_no_item_of_a_durable_batch_is_asked_again(killed: Killed) -> None:
    assert killed.durable <= killed.asked_before
    assert len(killed.asked_after) == len(set(killed.asked_after))
    assert not killed.durable & set(killed.asked_after)
    assert len(killed.durable) + len(killed.asked_after) == 280


@dataclass(frozen=True)
class Head:
    """A Ray head as an operator starts it: where jobs are submitted, where its logs are, and its token."""

    address: str
    logs: Path
    token: dict[str, str]


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    # Not below pytest's folder: Ray's sockets need a short path.
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    gcs, dashboard = free_port(), free_port()
    start = [BIN / "ray", "start", "--head", f"--port={gcs}", f"--dashboard-port={dashboard}", "--num-cpus=2"]
    start += ["--disable-usage-stats", f"--temp-dir={folder}"]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {**os.environ, **token, "TEST_SECRET": S3_SECRET, "PATH": f"{BIN}:{os.environ['PATH']}"}
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, env=environment)
    yield Head(f"http://127.0.0.1:{dashboard}", folder, token)
    subprocess.run([BIN / "ray", "stop", "--force"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)


def test_the_same_300_on_s3_through_a_job(
    dataset: Dataset, undisturbed: pa.Table, s3_server: S3Server, head: Head
) -> None:
    bucket, storage = s3_server.make_bucket(), s3_server.storage
    fs, path = storage.filesystem(f"{bucket}/data")
    fs.put(str(dataset.manifest.parent), path, recursive=True)
    submit = [BIN / "ray", "job", "submit", "--address", head.address, "--working-dir", ".", "--", "python"]
    run = command(f"{bucket}/data/{dataset.manifest.name}", f"{bucket}/out")[1:]
    reach = [
        f"storage.s3.endpoint_url={s3_server.endpoint}",
        "storage.s3.region=eu-west-1",
        "storage.s3.access_key_id=tester",
        "storage.s3.secret_access_key=${TEST_SECRET}",
    ]
    done = finished([*submit, *run, *reach], **head.token)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "280 ok, 20 failed" in done.stdout
    table = results(f"{bucket}/out", storage)
    assert table.select(SAME_COLUMNS).equals(undisturbed.select(SAME_COLUMNS))
    assert_nowhere(S3_SECRET, done.stdout + done.stderr, head.logs, storage, f"{bucket}/out")


def assert_nowhere(secret: str, printed: str, logs: Path, storage: Storage, output: str) -> None:
    """The secret is in nothing that was printed, logged by Ray, or written beside the results."""
    assert secret not in printed
    logged = [path for path in logs.rglob("*") if path.is_file() and path.suffix in (".log", ".out", ".err")]
    assert len(logged) > 10
    assert not [path for path in logged if secret.encode() in path.read_bytes()]
    written = [file.uri for file in storage.find(output)]
    assert any("/_runs/" in uri for uri in written)
    assert not [uri for uri in written if secret.encode() in storage.read(uri)]


def _wait_for_batches(job: subprocess.Popen[bytes], output: Path, count: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert job.poll() is None, "the run ended before it could be killed"
        if len(batch_files(output)) >= count:
            return psutil.Process(job.pid).children(recursive=True)
        time.sleep(0.05)
    raise TimeoutError(f"{output} has no {count} batches")


def _item_uuids(output: Path) -> set[str]:
    files = [*batch_files(output), *output.glob("recipe=*/*.parquet")]
    rows = [row for file in files for row in pq.read_table(file, columns=["item_uuid", "status"]).to_pylist()]
    return {row["item_uuid"] for row in rows if row["status"] == "ok"}


def _asked(folder: Path) -> list[str]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    return [json.loads(line)["item_uuid"] for line in lines]
