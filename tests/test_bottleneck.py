"""The sentence about a run's bottleneck, over made-up figures of each kind of run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.bottleneck import Effort, bottleneck

# 100 s of one engine that is never idle, computes 200 requests at once, and has as many waiting.
BUSY = Effort(
    seconds=130,
    start_seconds=30,
    up_seconds=100,
    idle_seconds=1,
    lost_seconds=0,
    in_hand=450,
    running=200,
    waiting=200,
    preempted=0.0,
    most_in_hand=768,
    prepare_seconds=90,
    write_seconds=5,
    gpu_utilisation=0.97,
)


def test_a_busy_engine_is_the_limit() -> None:
    assert bottleneck(BUSY) == (
        "The engines bind (200 requests computed at once, 200 waiting, GPUs 97 % busy): "
        "add engine.replicas, or lower media.max_pixels or sampling.max_tokens."
    )


def test_without_a_gpu_none_is_told() -> None:
    assert "GPU" not in bottleneck(replace(BUSY, gpu_utilisation=None))


@pytest.mark.parametrize(
    ("changed", "figure", "setting"),
    [
        ({"seconds": 50}, "30 of 50 s", "engine.replicas"),
        ({"lost_seconds": 25}, "25 %", "engine_crash"),
        ({"idle_seconds": 40}, "40 %", "storage.fetch_threads"),
        ({"idle_seconds": 40, "write_seconds": 95}, "40 %", "output.batch_rows"),
        ({"running": 20, "waiting": 0}, "of 450 requests in hand 20", "engine.render_workers"),
        ({"preempted": 0.3}, "30 %", "engine.args.max_num_seqs"),
        (
            {"running": 700, "waiting": 0, "in_hand": 750, "gpu_utilisation": 0.6},
            "750 requests",
            "engine.batches_in_flight",
        ),
    ],
)
def test_each_bottleneck_has_its_figure_and_its_setting(
    changed: dict[str, float], figure: str, setting: str
) -> None:
    told = bottleneck(replace(BUSY, **changed))
    assert figure in told
    assert setting in told
    assert told.endswith(".")
    assert told.count(". ") == 0, "one sentence"


def test_a_gpu_that_is_busy_is_not_told_to_take_more() -> None:
    told = bottleneck(replace(BUSY, running=700, waiting=0, in_hand=750))
    assert told.startswith("The engines bind")


def test_what_wastes_engines_goes_first() -> None:
    assert "Replacing dead engines" in bottleneck(replace(BUSY, lost_seconds=30, idle_seconds=30))
    assert "Starting engines" in bottleneck(replace(BUSY, seconds=40, lost_seconds=30))


def test_a_run_without_an_engine_is_no_division_by_zero() -> None:
    nothing = {
        name: 0 for name in ("up_seconds", "idle_seconds", "in_hand", "running", "waiting", "start_seconds")
    }
    assert bottleneck(replace(BUSY, **nothing))
