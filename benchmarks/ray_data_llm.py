"""`ray.data.llm`'s vLLM processor over a folder of pictures, its engine set for batches as ours is."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ray
from ray._private.state import actors
from ray.data.llm import build_processor, vLLMEngineProcessorConfig

from benchmarks.made_media import picture_of, prompt_about

BATCH = 32
BATCHES_IN_FLIGHT = 40
ENGINE = {"max_num_batched_tokens": 16384, "max_num_seqs": 1024}
"""What the others' usage context sets; this processor's is a server's."""


def measure(media: Path, arguments: dict[str, Any], sampling: dict[str, Any]) -> dict[str, Any]:
    """Rows per second from when its engine is up, and from its first row; seconds are from the start."""
    arguments = dict(arguments)
    config = vLLMEngineProcessorConfig(
        model_source=arguments.pop("model"),
        engine_kwargs={**arguments, **ENGINE},
        batch_size=BATCH,
        max_concurrent_batches=BATCHES_IN_FLIGHT,
        concurrency=1,
        prepare_multimodal_stage={"enabled": False},
        chat_template_stage={"enabled": False},
        tokenize_stage={"enabled": False},
        detokenize_stage={"enabled": False},
        log_engine_metrics=False,
    )

    def ask(row: dict[str, Any]) -> dict[str, Any]:
        prompt, data = prompt_about("<|image_pad|>"), {"image": picture_of(Path(row["path"]))}
        return {"prompt": prompt, "multimodal_data": data, "sampling_params": sampling}

    processor = build_processor(config, preprocess=ask, postprocess=lambda row: {"text": row["generated_text"]})
    paths = [{"path": str(path)} for path in sorted(media.iterdir())]
    began = time.perf_counter()
    up = ThreadPoolExecutor(1).submit(_seconds_when_up, began)
    rows = iter(processor(ray.data.from_items(paths, override_num_blocks=len(paths) // BATCH)).iter_rows())
    next(rows)
    first_row, count = time.perf_counter() - began, 1 + sum(1 for _ in rows)
    seconds = time.perf_counter() - began
    assert count == len(paths)
    return {
        "rate": count / (seconds - up.result()),
        "after_first_row": round((count - 1) / (seconds - first_row), 2),
        "first_row_s": round(first_row, 2),
        "start": round(up.result(), 2),
        "seconds": round(seconds, 2),
    }


def _seconds_when_up(began: float) -> float:
    """The seconds from `began` until the processor's actor is ready, which starts its engine before."""
    while not any(
        "vLLMEngineStageUDF" in actor["ActorClassName"] and actor["State"] == "ALIVE"
        for actor in actors().values()
    ):
        time.sleep(0.1)
    return time.perf_counter() - began
