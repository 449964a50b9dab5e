"""What a run did, in numbers: gathered from the batches as they become durable."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.bottleneck import Effort, bottleneck
from pipeline.results.ledger import Finished

_STAGES = ("prepare", "generate", "write")


@dataclass
class Tally:
    """Adds up the stats of durable batches. Constant in size, whatever the dataset's."""

    rows: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    output_tokens: int = 0
    busy: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)
    engines: dict[str, dict[str, float]] = field(default_factory=dict)
    first_request: float | None = None
    first_answer: float | None = None
    last_answer: float | None = None

    def add(self, stats: Mapping[str, Any]) -> None:
        """Count one durable batch."""
        self.rows += stats["rows"]
        self.codes.update(stats["codes"])
        self.sources.update(stats["sources"])
        self.prompt_tokens += stats["prompt_tokens"]
        self.output_tokens += stats["output_tokens"]
        for stage in _STAGES:
            self.busy[stage] += stats[f"{stage}_end"] - stats[f"{stage}_start"]
        self.waiting["for an engine"] += max(0.0, stats["generate_start"] - stats["prepare_end"])
        self.waiting["for a writer"] += max(0.0, stats["write_start"] - stats["generate_end"])
        engine = dict(stats["engine"])
        known = self.engines.setdefault(engine.pop("name"), engine)
        if engine["up_seconds"] > known["up_seconds"]:  # batches of one engine may come in another order
            known.update(engine)
        self.first_request = min(self.first_request or stats["generate_start"], stats["generate_start"])
        self.first_answer = min(self.first_answer or stats["generate_end"], stats["generate_end"])
        self.last_answer = max(self.last_answer or 0.0, stats["generate_end"])

    def add_finished(self, finished: Finished) -> None:
        """Count the rows of a shard that waited for another row's answer, and have it."""
        self.rows += finished.filled
        self.codes.update(finished.codes)
        self.sources["duplicate"] += finished.filled

    @property
    def failed(self) -> int:
        """Rows that have no answer."""
        return sum(self.codes.values())

    @property
    def steps(self) -> int:
        """Of all engines; 0 where none computed anything."""
        return int(sum(engine.get("steps", 0) for engine in self.engines.values()))

    @property
    def answering_seconds(self) -> float:
        """From the moment an engine took its first batch to the last answer."""
        return (self.last_answer or 0.0) - (self.first_request or 0.0)

    @property
    def rate(self) -> float | None:
        """Result rows per second while engines were up; None before there are any."""
        return self.rows / self.answering_seconds if self.answering_seconds > 0 else None


@dataclass(frozen=True)
class RunSummary:
    """The end of a run. Rows are result rows (items × tasks); seconds are wall-clock unless said otherwise.

    Attributes:
        rows: all rows that the manifest makes.
        done_before: rows that were durable when the run began.
        ok, failed: of this run's rows, the failed ones by code.
        cached: of this run's rows, those answered without an engine.
        seconds: from the command to the last file.
        engine_start_seconds: of the slowest engine.
        first_answer_seconds, last_answer_seconds: from the command to the first, and the last, batch's answers.
        rows_per_second: from the moment an engine took its first batch to the last answer.
        busy_seconds: added over all workers of a stage; of generate: over batches, which overlap.
        waiting_seconds: added over batches, and of engines without a batch in hand (`engine idle`).
        replicas: of each engine's actor, its time and its engine's figures (`results.md` explains them).
        bottleneck: what kept the run from being faster, and the setting to change.
        warnings: what does not stop a run, and may be a mistake.
    """

    output: str
    rows: int
    done_before: int
    ok: int
    failed: dict[str, int]
    cached: int
    seconds: float
    engine_start_seconds: float
    first_answer_seconds: float | None
    last_answer_seconds: float | None
    engine_restarts: int
    rows_per_second: float | None
    prompt_tokens_per_second: float | None
    output_tokens_per_second: float | None
    busy_seconds: dict[str, float]
    waiting_seconds: dict[str, float]
    replicas: dict[str, dict[str, float]]
    bottleneck: str | None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        tally: Tally,
        *,
        output: str,
        rows: int,
        done_before: int,
        started: float,
        most_in_hand: int = 0,
        warnings: Sequence[str] = (),
    ) -> RunSummary:
        """The summary of what was counted; `most_in_hand` requests may be in hand of one engine."""
        seconds = time.time() - started
        span = tally.answering_seconds
        engines = tally.engines.values()
        idle = sum(engine["idle_seconds"] for engine in engines)
        return cls(
            output=output,
            rows=rows,
            done_before=done_before,
            ok=tally.rows - tally.failed,
            failed=dict(tally.codes.most_common()),
            cached=tally.sources["cache"] + tally.sources["duplicate"],
            seconds=round(seconds, 3),
            engine_start_seconds=round(max((e["start_seconds"] for e in engines), default=0.0), 3),
            first_answer_seconds=_rounded(tally.first_answer and tally.first_answer - started),
            last_answer_seconds=_rounded(tally.last_answer and tally.last_answer - started),
            engine_restarts=int(sum(engine["restarts"] for engine in engines)),
            rows_per_second=_rounded(tally.rate),
            prompt_tokens_per_second=_rounded(tally.prompt_tokens / span if span > 0 else None),
            output_tokens_per_second=_rounded(tally.output_tokens / span if span > 0 else None),
            busy_seconds={name: round(value, 3) for name, value in tally.busy.items()},
            waiting_seconds={
                **{name: round(value, 3) for name, value in tally.waiting.items()},
                "engine idle": round(idle, 3),
            },
            replicas={name: _derived(engine) for name, engine in tally.engines.items()},
            bottleneck=bottleneck(effort_of(tally, seconds, most_in_hand)) if tally.steps else None,
            warnings=tuple(warnings),
        )

    def lines(self) -> list[str]:
        """The summary for people."""
        if self.ok + sum(self.failed.values()) == 0:
            return [f"nothing to do: all {self.rows:,} rows are in {self.output}"]
        failed = sum(self.failed.values())
        before = f"; {self.done_before:,} were done before" if self.done_before else ""
        restarts = f", {self.engine_restarts} engine restarts" if self.engine_restarts else ""
        lines = [
            f"{self.rows:,} rows in {self.output}",
            f"  this run   {self.ok:,} ok, {failed:,} failed, {self.cached:,} cached{before}",
            *(f"  failed     {count:,} {code}" for code, count in self.failed.items()),
            *(f"  warning    {warning}" for warning in self.warnings),
            f"  time       {self.seconds:,.1f} s, "
            f"of which {self.engine_start_seconds:,.1f} s to start an engine{restarts}",
        ]
        if self.rows_per_second:
            lines.append(
                f"  rate       {self.rows_per_second:,.1f} rows/s, "
                f"{self.prompt_tokens_per_second or 0:,.0f} prompt "
                f"and {self.output_tokens_per_second or 0:,.0f} output tokens/s"
            )
        busy = ", ".join(f"{stage} {seconds:,.1f}" for stage, seconds in self.busy_seconds.items())
        waiting = ", ".join(f"{what} {seconds:,.1f}" for what, seconds in self.waiting_seconds.items())
        lines += [f"  busy       {busy} s (batches added up)", f"  waiting    {waiting} s"]
        return [*lines, *([f"  bottleneck {self.bottleneck}"] if self.bottleneck else [])]


def effort_of(tally: Tally, seconds: float, most_in_hand: int) -> Effort:
    """Where the time of a run of so many seconds went, its engines taken together."""
    engines = tally.engines.values()

    def total(name: str) -> float:
        return sum(engine.get(name, 0.0) for engine in engines)

    up, steps = total("up_seconds"), max(1, tally.steps)
    busy = up - total("idle_seconds")
    used = [engine["gpu_utilisation"] for engine in engines if "gpu_utilisation" in engine]
    return Effort(
        seconds=seconds,
        start_seconds=max((engine["start_seconds"] for engine in engines), default=0.0),
        up_seconds=up,
        idle_seconds=total("idle_seconds"),
        lost_seconds=total("lost_seconds"),
        in_hand=total("request_seconds") / busy if busy > 0 else 0.0,
        running=total("running") / steps,
        waiting=total("waiting") / steps,
        preempted=total("preemptions") / max(1, tally.rows),
        most_in_hand=most_in_hand,
        prepare_seconds=tally.busy["prepare"],
        write_seconds=tally.busy["write"],
        gpu_utilisation=sum(used) / len(used) if used else None,
    )


def _derived(engine: Mapping[str, float]) -> dict[str, float]:
    """A replica's counts, and the means and shares that are made of them."""
    found = {name: round(value, 3) for name, value in engine.items() if name not in ("running", "waiting")}
    if (busy := engine["up_seconds"] - engine["idle_seconds"]) > 0:
        found["mean_in_hand"] = round(engine["request_seconds"] / busy, 3)
    for name, part, whole in (
        ("mean_running", "running", "steps"),
        ("mean_waiting", "waiting", "steps"),
        ("prefix_hit_rate", "prefix_hits", "prefix_queries"),
        ("media_hit_rate", "media_hits", "media_queries"),
        ("prompt_tokens_per_second", "prompt_tokens", "up_seconds"),
        ("output_tokens_per_second", "output_tokens", "up_seconds"),
    ):
        if engine.get(whole):
            found[name] = round(engine.get(part, 0.0) / engine[whole], 3)
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
