"""Names what kept a run from being faster, and the setting to change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Where a run's time went.

    Attributes:
        seconds: of the whole run; start_seconds: of these, until the slowest engine was up.
        up_seconds, idle_seconds, lost_seconds: of the engines from their first batch on, added up: all, without
            a batch in hand, and spent on replacing dead ones.
        in_hand: requests that an engine's actor had in hand, on average over the time with a batch.
        running, waiting: requests that were computed, and that waited in the engine, on average over its steps.
        preempted: of the requests, the part that lost its cache and began again.
        most_in_hand: requests that an actor may have in hand (batches x rows x tasks).
        prepare_seconds, write_seconds: busy, added up over tasks.
        gpu_utilisation: 0 to 1; None where there is no GPU.
    """

    seconds: float
    start_seconds: float
    up_seconds: float
    idle_seconds: float
    lost_seconds: float
    in_hand: float
    running: float
    waiting: float
    preempted: float
    most_in_hand: int
    prepare_seconds: float
    write_seconds: float
    gpu_utilisation: float | None = None


def bottleneck(effort: Effort) -> str:
    """One sentence: what bound the run, by which figure, and what to change.

    The first that holds is told, from what wastes engines entirely to what they are limited by themselves.
    """
    up = max(effort.up_seconds, 1e-9)
    if effort.start_seconds > effort.seconds / 2:
        return (
            f"Starting engines took {effort.start_seconds:,.0f} of {effort.seconds:,.0f} s: give one run more "
            "rows, or fewer engine.replicas."
        )
    if effort.lost_seconds > 0.2 * up:
        return (
            f"Replacing dead engines took {_percent(effort.lost_seconds / up)} of their time: look at the rows "
            "with engine_crash, and lower engine.args.gpu_memory_utilization if they died of memory."
        )
    if effort.idle_seconds > 0.2 * up:
        return _starved(effort, effort.idle_seconds / up)
    inside = effort.running + effort.waiting
    if inside > 0 and effort.in_hand > 2 * inside:
        return (
            f"Rendering binds: of {effort.in_hand:,.0f} requests in hand {inside:,.0f} had reached the engine; "
            "raise engine.render_workers (and the node's CPUs), or lower media.max_pixels."
        )
    if effort.preempted > 0.1:
        return (
            f"The KV cache binds: {_percent(effort.preempted)} of the requests lost theirs and began again; "
            "raise engine.args.gpu_memory_utilization or engine.tensor_parallel_size, or lower "
            "engine.args.max_num_seqs."
        )
    unused = effort.gpu_utilisation is None or effort.gpu_utilisation < 0.9
    if effort.waiting < 0.05 * effort.running and effort.in_hand > 0.8 * effort.most_in_hand and unused:
        return (
            f"The engines could compute more at once than the {effort.in_hand:,.0f} requests that they had in "
            "hand: raise engine.batches_in_flight."
        )
    utilisation = "" if effort.gpu_utilisation is None else f", GPUs {_percent(effort.gpu_utilisation)} busy"
    return (
        f"The engines bind ({effort.running:,.0f} requests computed at once, {effort.waiting:,.0f} waiting"
        f"{utilisation}): add engine.replicas, or lower media.max_pixels or sampling.max_tokens."
    )


def _starved(effort: Effort, idle: float) -> str:
    told = f"The engines had nothing to do in {_percent(idle)} of their time: "
    if effort.write_seconds > effort.prepare_seconds:
        return told + "writing binds; raise output.batch_rows, or use a store nearer to the nodes."
    return (
        told + "fetching and decoding bind; give Ray more CPUs, or raise storage.fetch_threads for slow stores."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
