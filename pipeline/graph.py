"""The stages of a run as a Ray Data graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext, Dataset

from pipeline.engine.arguments import Device, device_of
from pipeline.plan import Plan
from pipeline.read_ahead import limit_read_ahead
from pipeline.results.dedup import Answers
from pipeline.stages.connect import Connect
from pipeline.stages.generate import Generate, GenerateSetup
from pipeline.stages.prepare import Prepare
from pipeline.stages.read import Read, Work, work_rows
from pipeline.stages.write import Write


@dataclass(frozen=True)
class RunContext:
    """What one run adds to its plan: its name, and who knows the answers so far.

    `known`: whether any answer, and any object version, was known when it began.
    """

    run_id: str
    answers: Answers
    known: tuple[bool, bool]


def build_graph(plan: Plan, work: Sequence[Work], context: RunContext) -> Dataset:
    """Read → prepare → generate → write over the work; each row of the result is a durable batch.

    Read and prepare differ in `num_cpus` so that Ray Data keeps them apart: fused, one task would decode
    a whole shard.
    """
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
    data = DataContext.get_current()
    data.enable_progress_bars = False
    data.enable_operator_progress_bars = False
    limit_read_ahead(data)
    config = plan.config
    read = ray.data.from_arrow(work_rows(work)).map_batches(
        Read(plan.storage, plan.manifest.for_workers()), batch_size=1, batch_format="pyarrow", num_cpus=0.5
    )
    batches = read.repartition(target_num_rows_per_block=1)
    prepare = Prepare(
        storage=plan.storage,
        loader=plan.loader,
        prompts=plan.recipe.tasks,
        answering=plan.recipe.answering,
        max_bytes=config.media.max_bytes,
        max_per_item=config.media.max_per_item,
        answers=context.answers,
        versions_known=context.known[1],
        max_question_chars=config.manifest.max_question_chars,
    )
    prepared = batches.map_batches(prepare, batch_size=1, batch_format="pyarrow", num_cpus=1)
    answered = prepared.map_batches(
        Generate,
        fn_constructor_args=[_setup(plan, context)],
        batch_size=1,
        batch_format="pyarrow",
        compute=_pool(plan, sum(len(one.ranges) for one in work)),
        **_resources(plan, device_of(config)),
    )
    write = Write(plan.ledger, context.answers)
    return answered.map_batches(write, batch_size=1, batch_format="pyarrow", num_cpus=0.5)


def _setup(plan: Plan, context: RunContext) -> GenerateSetup:
    config = plan.config
    connect = Connect(
        kind=config.engine.kind,
        spec=plan.spec,
        storage=plan.storage,
        model=plan.model,
        absolute=plan.absolute_model,
        arguments=plan.arguments,
        sampling=plan.recipe.sampling,
        environment=_environment(plan),
        pixels_in_flight=config.engine.pixels_in_flight,
        render_workers=config.engine.render_workers,
        special_tokens=config.manifest.special_tokens,
    )
    return GenerateSetup(
        connect=connect,
        tasks=plan.recipe.tasks,
        max_images=config.media.max_per_item,
        max_restarts=config.engine.max_restarts,
        accept_truncated=config.output.accept_truncated,
        request_log=config.engine.request_log,
        hang_seconds=config.engine.hang_seconds,
        pixels_in_flight=config.engine.pixels_in_flight,
        shrink_too_long=config.media.too_long == "shrink",
        run=context.run_id,
        eager=not context.known[0],
    )


def _pool(plan: Plan, batches: int) -> ActorPoolStrategy:
    engine = plan.config.engine
    largest = max(engine.replicas.min, min(engine.replicas.max, batches))
    # The replica that is up first leaves the others their share.
    in_flight = max(1, min(engine.batches_in_flight, -(-batches // engine.replicas.min)))
    # Ray Data grows a pool when its actors have 1.75 times as many tasks as they take at once.
    queued = 2 if largest > engine.replicas.min else 1
    return ActorPoolStrategy(
        min_size=engine.replicas.min,
        max_size=largest,
        max_tasks_in_flight_per_actor=queued * in_flight,
        max_concurrent_calls_per_actor=in_flight,
    )


def _resources(plan: Plan, device: Device) -> dict[str, Any]:
    if plan.config.engine.kind == "echo" or device == "cpu":
        # On a CPU the engine's own threads take what cores there are; what Ray counts is for the other
        # stages, and enough to put replicas on different nodes.
        return {"num_cpus": 0.5}
    return {"num_gpus": plan.config.engine.tensor_parallel_size, "num_cpus": 1}


def _environment(plan: Plan) -> dict[str, str]:
    several = plan.config.engine.replicas.max * plan.config.engine.tensor_parallel_size > 1
    if device_of(plan.config) == "cpu" and several:
        return {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return {}
