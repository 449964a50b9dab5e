"""Runs a plan: sends its work through the graph, finishes shards as they fill, and sums up."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import ray

from pipeline.config_file import LoadedConfig
from pipeline.errors import EngineError, StorageError
from pipeline.graph import RunContext, build_graph
from pipeline.plan import Plan, make_plan
from pipeline.progress import Progress
from pipeline.report import RunSummary, Tally
from pipeline.results.dedup import FAILURES_IN_A_RUN, Answers
from pipeline.results.duplicates import find_duplicate_ids
from pipeline.results.ledger import Finished, Ledger, Range
from pipeline.results.lineage import write_records
from pipeline.results.lock import Lock
from pipeline.results.retired import move
from pipeline.stages.answers_actor import RemoteAnswers
from pipeline.stages.batch import outage_text
from pipeline.stages.read import Work
from pipeline.storage import join

LEFTOVER_SECONDS = 24 * 3600
"""Temporary files older than this are of a run that was killed: no file takes so long to write."""

MOST_PASSES = FAILURES_IN_A_RUN + 3
"""The work itself, those in which rows that waited in vain ask themselves, and one to spare."""


def run(loaded: LoadedConfig) -> RunSummary:
    """Do what the configuration says that is not done yet.

    Joins the cluster that `RAY_ADDRESS` (or `ray job submit`) names or `ray start` began on this machine, or
    starts a local Ray.

    Raises:
        ConfigError: before anything is started, naming every problem; or another run holds the output.
        OutputTakenError: another run took the output over, since this one seemed dead.
        EngineError: no engine could start or be kept alive; what is durable stays, the same command goes on.
        StorageError: the store was out for longer than `storage.retry.run`; likewise.
    """
    return run_plan(lambda: make_plan(loaded))


def run_plan(make: Callable[[], Plan]) -> RunSummary:
    """Do what a plan says. Raises as `run`.

    Args:
        make: plans; asked again if another run changed what is durable before this one had the lock.
    """
    started = time.time()
    plan = make()
    for warning in plan.warnings:
        print(f"warning: {warning}", flush=True)
    tally = Tally()
    per_item = len(plan.recipe.tasks)
    plan.storage.sweep(plan.config.output.uri, LEFTOVER_SECONDS)
    if plan.work or plan.to_finish or plan.stale or plan.leftovers:
        with Lock(plan.storage, plan.ledger.folder) as lock:
            if plan.ledger.scan() != plan.durable:
                plan = make()  # what another run did until now is not work any more
            _work(plan, tally, lock)
            run_id = lock.run
    summary = RunSummary.of(
        tally,
        output=plan.ledger.folder,
        rows=plan.manifest.rows * per_item,
        done_before=plan.done_rows * per_item,
        started=started,
        most_in_hand=plan.config.engine.batches_in_flight * plan.config.output.batch_rows * per_item,
        warnings=_id_warnings(plan) if plan.work else (),
    )
    if plan.work or plan.to_finish or plan.stale:
        _put_summary(plan, summary, run_id)
    return summary


def _work(plan: Plan, tally: Tally, lock: Lock) -> None:
    per_item = len(plan.recipe.tasks)
    plan.storage.remove(plan.leftovers)
    if not (plan.work or plan.to_finish or plan.stale):
        return
    move(plan.storage, plan.stale)
    write_records(plan.storage, plan.ledger.folder, plan.recipe.as_dict(), plan.record)
    _connect()
    answers = RemoteAnswers.start(plan.ledger, plan.caches, plan.config.cache.trust_versions)
    try:
        with _telling_outages():
            with Progress(plan.manifest.rows * per_item, plan.done_rows * per_item, tally) as progress:
                context = RunContext(lock.run, answers, answers.knows())
                _Inference(plan, context, tally, progress, lock).all()
            answers.save_index()  # The last thing: without it the next run reads the shards' own columns.
    finally:
        answers.close()


def _id_warnings(plan: Plan) -> list[str]:
    """Whether items share an id, where ids come from the manifest: elsewhere they are made unique."""
    if plan.manifest.columns.id is None:
        return []
    look = ray.remote(num_cpus=0.25, max_retries=3)(find_duplicate_ids)  # not in the driver: it holds all ids
    with _telling_outages():
        found = ray.get(look.remote(plan.ledger, plan.manifest.rows))
    return [] if found is None else [found.text()]


class _Inference:
    """The passes of a run over its work, and the end of each shard."""

    def __init__(self, plan: Plan, context: RunContext, tally: Tally, progress: Progress, lock: Lock) -> None:
        self._plan = plan
        self._context = context
        self._tally = tally
        self._progress = progress
        self._lock = lock
        self._shards = {shard.name: shard for shard in plan.shards}
        self._ledger = ray.put(plan.ledger)
        self._finish = ray.remote(num_cpus=0.25, max_retries=3)(_finish)
        self._finishing: dict[Any, str] = {}
        self._waiting: dict[str, Finished] = {}

    def all(self) -> None:
        """Finish what only lacks its file, then infer until no row waits for another one's answer."""
        for name in self._plan.to_finish:
            self._end(name)
        self._collect(wait=True)
        work = self._plan.work
        for _ in range(MOST_PASSES):
            if not work and not self._waiting:
                return
            again = self._taken_over()
            self._pass([*work, *again])
            work = []
        raise RuntimeError(f"{len(self._waiting)} shards wait for answers in vain; run the same command again")

    def _taken_over(self) -> list[Work]:
        """Rows that wait for an answer which nobody will bring, as work of their own."""
        waiting, self._waiting = self._waiting, {}
        size = self._plan.config.output.batch_rows
        return [Work.to_do_again(self._shards[name], found.waiting, size) for name, found in waiting.items()]

    def _pass(self, work: list[Work]) -> None:
        open_ranges: dict[str, set[Range]] = {one.shard.name: set(one.ranges) for one in work}
        graph = build_graph(self._plan, work, self._context)
        for table in graph.iter_batches(batch_size=None, batch_format="pyarrow"):
            self._lock.check()
            for row in table.to_pylist():
                stats = json.loads(row["stats"])
                if "fatal" in stats:
                    raise EngineError(stats["fatal"])
                if "outage" in stats:
                    raise StorageError(stats["outage"])
                self._tally.add(stats)
                left = open_ranges[row["shard"]]
                left.discard((row["start"], row["stop"]))
                if not left:
                    del open_ranges[row["shard"]]
                    self._end(row["shard"])
            self._collect(wait=False)
            self._progress.update()
        self._collect(wait=True)
        for name in list(self._waiting):
            self._end(name)
        self._collect(wait=True)
        if open_ranges:
            raise RuntimeError(f"{len(open_ranges)} shards have no end; run the same command again")

    def _end(self, name: str) -> None:
        self._waiting.pop(name, None)
        shard = self._shards[name]
        base = self._plan.bases.get(name)
        ended = self._finish.remote(self._ledger, name, (shard.start, shard.stop), self._context.answers, base)
        self._finishing[ended] = name

    def _collect(self, wait: bool) -> None:
        """Take note of shards that ended, and try those again that waited for rows of them."""
        if not self._finishing:
            return
        ended, _ = ray.wait(
            list(self._finishing), num_returns=len(self._finishing), timeout=None if wait else 0
        )
        others = list(self._waiting)
        for reference in ended:
            name = self._finishing.pop(reference)
            found: Finished = ray.get(reference)
            self._tally.add_finished(found)
            if found.waiting:
                self._waiting[name] = found
        if ended and not wait:
            for name in others:
                self._end(name)


def _finish(ledger: Ledger, shard: str, rows: Range, answers: Answers, base: str | None) -> Finished:
    return ledger.finish(shard, rows, answers, base)


@contextmanager
def _telling_outages() -> Iterator[None]:
    """Where a task or actor of Ray's ended with a `StorageError`, raise that, without Ray's text around it."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error, StorageError):
            raise StorageError(outage_text(error)) from None
        raise


def _connect() -> None:
    """Join the cluster that `RAY_ADDRESS` names (as in a job), else the one that `ray start` began on this
    machine; where there is none, or with `RAY_ADDRESS=local`, start one without the dashboard's processes.

    Not `address="auto"`: it would join even what another program began with `ray.init()` for itself.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)


def _put_summary(plan: Plan, summary: RunSummary, run_id: str) -> None:
    record = {"summary": asdict(summary), "config": plan.written}
    uri = join(plan.ledger.folder, f"_runs/{run_id}.json")
    plan.storage.put(uri, json.dumps(record, indent=1, ensure_ascii=False).encode())
