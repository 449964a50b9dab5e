"""How many render workers, and how much of the shared memory, an engine gets by itself."""

import pytest

from pipeline.stages.connect import fitting_files, fitting_render_workers


@pytest.mark.parametrize(
    ("cpus", "gpus", "tensor_parallel_size", "workers"),
    [
        (16, 1, 1, 8),
        (64, 8, 1, 4),  # 8 cores an engine
        (64, 8, 4, 8),  # two engines, 32 cores each: no more than feed the smallest model
        (12, 1, 1, 6),
        (4, 4, 1, 0),  # no core to spare: the engine renders by itself
        (128, 2, 2, 8),
    ],
)
def test_half_of_an_engines_share_of_the_cores(
    cpus: float, gpus: float, tensor_parallel_size: int, workers: int
) -> None:
    resources = {"CPU": cpus, "GPU": gpus, "memory": 1e9}
    assert fitting_render_workers(resources, tensor_parallel_size) == workers


def test_a_node_that_tells_of_no_gpu_has_one_engine() -> None:
    assert fitting_render_workers({"CPU": 8.0}, 1) == 4


@pytest.mark.parametrize(
    ("resources", "tensor_parallel_size", "each"),
    [
        ({"GPU": 1.0, "object_store_memory": 30e9}, 1, 34e9),
        ({"GPU": 8.0, "object_store_memory": 30e9}, 1, 4.25e9),
        ({"GPU": 8.0, "object_store_memory": 30e9}, 4, 17e9),
        ({}, 1, 64e9),
        ({"GPU": 1.0, "object_store_memory": 65e9}, 1, -1e9),  # none: Ray's objects may be on a disk
    ],
)
def test_what_ray_leaves_of_shared_memory_is_shared(
    resources: dict[str, float], tensor_parallel_size: int, each: float
) -> None:
    assert fitting_files(resources, tensor_parallel_size, 64e9) == each
