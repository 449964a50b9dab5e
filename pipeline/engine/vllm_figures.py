"""Takes an engine's figures from vLLM, step by step."""

from __future__ import annotations

from typing import Any

from vllm.v1.metrics.loggers import PrometheusStatLogger

from pipeline.engine.figures import EngineFigures


def stat_logger(figures: EngineFigures) -> type[PrometheusStatLogger]:
    """The class of a logger that adds to `figures`, as vLLM's `stat_loggers` takes it.

    vLLM puts its own Prometheus logger beside any other that is not one; that observes histograms for each
    token of each request, in the process that feeds the engine.
    """

    class _Logger(PrometheusStatLogger):  # type: ignore[misc]
        def __init__(self, vllm_config: Any, engine_indexes: list[int] | None = None) -> None:
            del vllm_config, engine_indexes

        def record(
            self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, **_: Any
        ) -> None:
            add(figures, scheduler_stats, iteration_stats, mm_cache_stats)

        def log_engine_initialized(self) -> None:
            """Nothing to tell."""

        def record_sleep_state(self, *_: Any, **__: Any) -> None:
            """Engines of a batch do not sleep."""

        def record_admission_rejection(self, reason: str) -> None:
            """No request is turned away."""

    return _Logger


def add(figures: EngineFigures, scheduler: Any, iteration: Any, media: Any) -> None:
    """Add a step, as vLLM's SchedulerStats, IterationStats and MultiModalCacheStats tell it, or None."""
    figures.moved()
    if scheduler is not None:
        figures.steps += 1
        figures.running += scheduler.num_running_reqs
        figures.waiting += scheduler.num_waiting_reqs
        figures.kv_cache_peak = max(figures.kv_cache_peak, scheduler.kv_cache_usage)
        figures.prefix_queries += scheduler.prefix_cache_stats.queries
        figures.prefix_hits += scheduler.prefix_cache_stats.hits
    if iteration is not None:
        figures.prompt_tokens += iteration.num_prompt_tokens
        figures.output_tokens += iteration.num_generation_tokens
        figures.preemptions += iteration.num_preempted_reqs
    if media is not None:
        figures.media_queries += media.queries
        figures.media_hits += media.hits
