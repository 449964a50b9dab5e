"""Runs a plan: sends its work through the graph, finishes shards as they fill, and sums up."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import asdict
from typing import Any

import ray

from pipeline.config_file import LoadedConfig
from pipeline.errors import EngineError
from pipeline.graph import build_graph
from pipeline.plan import Plan, make_plan
from pipeline.progress import Progress
from pipeline.report import RunSummary, Tally
from pipeline.results.ledger import Ledger, Range
from pipeline.results.lineage import write_records
from pipeline.storage import join


def run(loaded: LoadedConfig) -> RunSummary:
    """Do what the configuration says that is not done yet.

    Starts a local Ray, or joins the cluster that `RAY_ADDRESS` (or `ray job submit`) names.

    Raises:
        ConfigError: before anything is started, naming every problem.
        EngineError: no engine could start or be kept alive; what is durable stays, the same command goes on.
    """
    started = time.time()
    plan = make_plan(loaded)
    for warning in plan.warnings:
        print(f"warning: {warning}", flush=True)
    tally = Tally()
    per_item = len(plan.recipe.tasks)
    plan.storage.remove(plan.leftovers)
    if plan.work or plan.to_finish:
        write_records(plan.storage, plan.ledger.folder, plan.recipe.as_dict(), plan.record)
    for name, rows in plan.to_finish:
        plan.ledger.finish(name, rows)
    if plan.work:
        _connect()
        with Progress(plan.manifest.rows * per_item, plan.done_rows * per_item, tally) as progress:
            _infer(plan, tally, progress)
    summary = RunSummary.of(
        tally,
        output=plan.ledger.folder,
        rows=plan.manifest.rows * per_item,
        done_before=plan.done_rows * per_item,
        started=started,
        most_in_hand=plan.config.engine.batches_in_flight * plan.config.output.batch_rows * per_item,
    )
    if plan.work:
        _put_summary(plan, summary, started)
    return summary


def _infer(plan: Plan, tally: Tally, progress: Progress) -> None:
    finish = ray.remote(num_cpus=0.25, max_retries=3)(_finish)
    ledger = ray.put(plan.ledger)
    rows_of = {one.shard.name: (one.shard.start, one.shard.stop) for one in plan.work}
    waiting_for = {one.shard.name: set(one.ranges) for one in plan.work}
    finishing: list[Any] = []
    for table in build_graph(plan).iter_batches(batch_size=None, batch_format="pyarrow"):
        for row in table.to_pylist():
            stats = json.loads(row["stats"])
            if "fatal" in stats:
                raise EngineError(stats["fatal"])
            tally.add(stats)
            shard = row["shard"]
            waiting_for[shard].discard((row["start"], row["stop"]))
            if not waiting_for[shard]:
                del waiting_for[shard]
                finishing.append(finish.remote(ledger, shard, rows_of[shard]))
        if finishing:
            done, finishing = ray.wait(finishing, num_returns=len(finishing), timeout=0)
            ray.get(done)
        progress.update()
    ray.get(finishing)
    if waiting_for:
        raise RuntimeError(f"{len(waiting_for)} shards have no end; run the same command again")


def _finish(ledger: Ledger, shard: str, rows: Range) -> int:
    return ledger.finish(shard, rows)


def _connect() -> None:
    """Join the cluster that `RAY_ADDRESS` names (as in a job), or start one, without the dashboard's processes.

    Not `address="auto"`: it would join whatever another program on this machine started for itself.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)


def _put_summary(plan: Plan, summary: RunSummary, started: float) -> None:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started))
    record = {"summary": asdict(summary), "config": plan.written}
    uri = join(plan.ledger.folder, f"_runs/{stamp}.json")
    plan.storage.put(uri, json.dumps(record, indent=1, ensure_ascii=False).encode())
