"""An engine's figures as Prometheus reads them from a Ray node."""

from __future__ import annotations

import time
import urllib.request

import ray

from pipeline.engine.figures import EngineFigures
from pipeline.stages.metrics import GAUGES, replica_metrics
from pipeline.stages.replica import ReplicaMeter
from tests.conftest import free_port


def test_every_figure_of_a_replica_has_its_gauge() -> None:
    meter = ReplicaMeter("a")
    meter.watch(EngineFigures())
    assert meter.stats(None, 1.0).keys() - {"name"} == GAUGES.keys() - {"gpu_utilisation", "gpu_memory_peak"}


def test_outside_of_ray_there_are_none() -> None:
    assert replica_metrics("a") is None


def test_prometheus_reads_them_from_the_node() -> None:
    port = free_port()
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _metrics_export_port=port)
    try:
        metrics = replica_metrics("replica-a")
        assert metrics is not None
        metrics.show({"restarts": 3, "prompt_tokens": 1500.0})
        found = lines_of(port, "framescribe_engine_prompt_tokens")
        assert any('replica="replica-a"' in line and line.endswith(" 1500.0") for line in found)
        restarts = lines_of(port, "framescribe_engine_restarts")
        assert any('replica="replica-a"' in line and line.endswith(" 3.0") for line in restarts)
    finally:
        ray.shutdown()


def lines_of(port: int, name: str) -> list[str]:
    """The samples of a metric, once there are some: nodes gather them every few seconds."""
    deadline = time.monotonic() + 60
    found: list[str] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.5)
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        except OSError:
            continue  # the node's exporter is not up yet
        found = [line for line in text.splitlines() if name in line and not line.startswith("#")]
    return found
