"""What vLLM's processes have in their environment where requests are rendered beside the engine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

LEAN = {
    # No process has an image to compute on any more; idle threads would spin on the cores of the renderers.
    "OMP_NUM_THREADS": "1",
    # Else each tensor of some megabytes is fresh memory, and half of a renderer's time goes into page faults.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""For the engine's core, and for each renderer. Measured in `benchmarks/README.md`."""

SPAWN = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
"""For an engine whose tensors go through a queue (`engine.handover`): vLLM asks for it."""


@contextlib.contextmanager
def started_with(variables: dict[str, str]) -> Iterator[None]:
    """Processes that are started within it have these too, where the user has not set them."""
    added = variables.keys() - os.environ.keys()
    os.environ.update({name: variables[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
