"""What the engine tests of models share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest


@pytest.fixture(scope="package")
def vllm_process() -> Iterator[ProcessPoolExecutor]:
    """One process for all engines, one after another: importing vLLM takes longer than starting one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool
