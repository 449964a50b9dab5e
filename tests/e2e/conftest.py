"""The Rays that end-to-end tests share: one of this machine, and one of two nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray
from ray.cluster_utils import Cluster


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """A Ray with two CPUs, which `run` joins."""
    ray.init(num_cpus=2, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[None]:
    """A cluster of two nodes with two CPUs each, which `run` joins."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
    cluster.shutdown()
