"""A whole run over an S3 store that fails now and then, and one that fails for good for a while."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image

from pipeline.config_file import LoadedConfig
from pipeline.errors import StorageError
from pipeline.run import run
from tests.conftest import S3Server
from tests.e2e.configurations import echo, results
from tests.faults.s3_proxy import FaultyProxy, Rates, faulty_proxy

ITEMS = 300
RATES = Rates(busy=0.05, reset=0.02, lost=0.02, truncated=0.03, stalled=0.01)
COLUMNS = ["id", "task", "status", "text", "error_code", "item_uuid", "media_uuids", "row", "source"]


@pytest.fixture(scope="module")
def dataset(s3_server: S3Server) -> str:
    """A bucket with 300 pictures, two of them missing, and their manifest."""
    bucket, storage = s3_server.make_bucket(), s3_server.storage
    for number in range(ITEMS - 2):
        file = io.BytesIO()
        Image.new("RGB", (32, 32), (number % 256, number // 256, 99)).save(file, "PNG")
        storage.put(f"{bucket}/in/{number}.png", file.getvalue())
    rows = [{"id": f"i{number}", "image": f"{number}.png"} for number in range(ITEMS)]
    storage.put(f"{bucket}/in/m.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    return bucket


@pytest.fixture(scope="module")
def undisturbed(local_ray: None, s3_server: S3Server, dataset: str) -> list[dict[str, Any]]:
    summary = run(configured(s3_server, dataset, "calm", s3_server.endpoint))
    assert (summary.ok, summary.failed) == (ITEMS - 2, {"fetch_not_found": 2})
    return rows_of(s3_server, f"{dataset}/calm")


def configured(server: S3Server, bucket: str, output: str, endpoint: str, seconds: float = 60) -> LoadedConfig:
    storage: dict[str, Any] = {**server.config}
    storage["s3"] = {**storage["s3"], "endpoint_url": endpoint}
    storage["timeouts"] = {"connect": 30, "read": 5, "total": 60}
    storage["retry"] = {
        "media": {"attempts": 10, "seconds": 60},
        "run": {"attempts": 20, "seconds": seconds},
    }
    pieces = {"batch_rows": 10, "shard_rows": 100}
    return echo(f"{bucket}/in/m.jsonl", f"{bucket}/{output}", output_parts=pieces, storage=storage)


def rows_of(server: S3Server, output: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = results(output, server.storage).select(COLUMNS).to_pylist()
    return rows


@pytest.fixture
def proxy(s3_server: S3Server, request: pytest.FixtureRequest) -> Iterator[FaultyProxy]:
    with faulty_proxy(s3_server.endpoint, request.param, seed=11, stall_seconds=30) as running:
        yield running


@pytest.mark.parametrize("proxy", [RATES], indirect=True, ids=["some faults"])
def test_faults_that_pass_change_no_row(
    s3_server: S3Server, dataset: str, undisturbed: list[dict[str, Any]], proxy: FaultyProxy
) -> None:
    run(configured(s3_server, dataset, "stormy", proxy.endpoint))
    assert proxy.faults.keys() == {"busy", "reset", "lost", "truncated", "stalled"}
    assert rows_of(s3_server, f"{dataset}/stormy") == undisturbed


@pytest.mark.parametrize("proxy", [Rates()], indirect=True, ids=["an outage"])
def test_an_outage_stops_the_run_and_the_same_command_goes_on(
    s3_server: S3Server, dataset: str, undisturbed: list[dict[str, Any]], proxy: FaultyProxy
) -> None:
    output = f"{dataset}/interrupted"
    proxy.puts_before_outage = 12
    with pytest.raises(StorageError) as raised:
        run(configured(s3_server, dataset, "interrupted", proxy.endpoint, seconds=3))
    assert f"{output}/recipe=" in str(raised.value)
    assert str(raised.value).endswith("; the same command goes on from what is durable")
    assert "\n" not in str(raised.value)
    proxy.puts_before_outage = None
    done = {file.uri for file in s3_server.storage.find(output) if file.uri.endswith(".parquet")}
    assert done
    summary = run(configured(s3_server, dataset, "interrupted", proxy.endpoint))
    assert 0 < summary.done_before < ITEMS
    assert rows_of(s3_server, output) == undisturbed
