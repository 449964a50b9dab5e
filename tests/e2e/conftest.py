"""One local Ray for the end-to-end tests that need no cluster of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """A Ray with two CPUs, which `run` joins."""
    ray.init(num_cpus=2, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
