"""Images per second on one GPU: the pipeline against what else one could run, all in one command.

    python -m benchmarks.gpu_throughput --size 3b --images 2000 --out 64

- `prerendered`: everything rendered before the clock starts: the GPU's own limit.
- `generate`: `LLM.generate` on images decoded before the clock starts.
- `ray_data_llm`: `ray.data.llm`'s vLLM processor, its engine set as the others', from files to rows, from its
  first row to its last.
- `pipeline:N`: this pipeline, from files to Parquet, with N render workers, once an engine is up.

Dummy weights, distinct 1024 x 768 JPEGs (`--clips --images 200`: 16 frames of 10 s of 720p each), greedy, a
fixed number of output tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.dummy_model import make_model
from benchmarks.made_media import (
    FRAMES,
    QUESTION,
    are_clips,
    make_clips,
    make_pictures,
    picture_of,
    prompt_about,
    prompts_about,
)
from pipeline.report import RunSummary

_TOLD = ("steps", "mean_running", "mean_waiting", "mean_in_hand", "gpu_utilisation")

ARGUMENTS: dict[str, Any] = {
    "max_model_len": 4096,
    "load_format": "dummy",
    "mm_processor_kwargs": {"min_pixels": 784, "max_pixels": 1003520},
    "limit_mm_per_prompt": {"image": 1, "video": 0},
}


def main() -> None:
    """Make files and model, run each variant in a process of its own, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="3b")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--clips", action="store_true", help="videos instead of images (not for ray_data_llm)")
    parser.add_argument("--out", type=int, default=64, help="output tokens")
    parser.add_argument("--variants", default="prerendered,pipeline:8,generate,ray_data_llm")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        variant, folder = arguments.child
        name, _, workers = variant.partition(":")
        print(json.dumps(VARIANTS[name](Path(folder), arguments.out, int(workers or 0))), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_model(arguments.size, Path(folder) / "model")
        (make_clips if arguments.clips else make_pictures)(Path(folder) / "media", arguments.images)
        for variant in arguments.variants.split(","):
            command = [sys.executable, "-m", "benchmarks.gpu_throughput", "--child", variant, folder]
            started = time.time()
            child = subprocess.run(
                [*command, "--out", str(arguments.out)], stdout=subprocess.PIPE, text=True, check=False
            )
            if child.returncode:
                print(f"{variant:<16} failed ({child.returncode})", flush=True)
                continue
            found = json.loads(child.stdout.splitlines()[-1])
            rate, more = found.pop("rate"), " ".join(f"{k}={v}" for k, v in found.items())
            print(
                f"{variant:<16} {rate:7.2f} images/s   {time.time() - started:6.1f} s in all   {more}",
                flush=True,
            )


def _sampling(out: int) -> dict[str, Any]:
    return {"temperature": 0.0, "max_tokens": out, "ignore_eos": True}


def _arguments(folder: Path) -> dict[str, Any]:
    """vLLM's engine arguments for the folder's model and media; a clip has some 10,000 tokens."""
    clips = {"max_model_len": 16384, "limit_mm_per_prompt": {"image": 0, "video": 1}}
    return {**ARGUMENTS, **(clips if are_clips(folder / "media") else {}), "model": str(folder / "model")}


def _prerendered(folder: Path, out: int, workers: int) -> dict[str, Any]:
    from pipeline.engine.base import Request
    from pipeline.engine.environment import LEAN, started_with
    from pipeline.engine.figures import EngineFigures
    from pipeline.engine.rendering import RenderPool
    from pipeline.engine.vllm import VllmEngine

    arguments, figures = {**_arguments(folder), "mm_processor_cache_gb": 0}, EngineFigures()

    async def measure() -> float:
        pool = RenderPool(arguments, workers or 8)
        rendered = await asyncio.gather(*(pool.render(prompt) for prompt in prompts_about(folder / "media")))
        pool.close()
        with started_with(LEAN):  # as the pipeline's
            engine = VllmEngine(arguments, figures=figures)
        asks = [Request(str(n), prompt, _sampling(out)) for n, prompt in enumerate(rendered)]
        await asyncio.gather(*(engine.generate(ask) for ask in asks[:8]))
        started = time.perf_counter()
        await asyncio.gather(*(engine.generate(ask) for ask in asks[8:]))
        return (len(asks) - 8) / (time.perf_counter() - started)

    rate, steps = asyncio.run(measure()), figures.steps
    return {
        "rate": rate,
        "steps": steps,
        "mean_running": round(figures.running / steps),
        "mean_waiting": round(figures.waiting / steps),
    }


def _generate(folder: Path, out: int, _: int) -> dict[str, Any]:
    from vllm import LLM, SamplingParams

    llm = LLM(**_arguments(folder), disable_log_stats=True)
    sampling = SamplingParams(**_sampling(out))
    prompts = prompts_about(folder / "media")
    llm.generate(prompts[:8], sampling, use_tqdm=False)  # type: ignore[arg-type]
    started = time.perf_counter()
    llm.generate(prompts[8:], sampling, use_tqdm=False)  # type: ignore[arg-type]
    return {"rate": (len(prompts) - 8) / (time.perf_counter() - started)}


def _ray_data_llm(folder: Path, out: int, _: int) -> dict[str, Any]:
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    arguments = {name: value for name, value in _arguments(folder).items() if name != "model"}
    config = vLLMEngineProcessorConfig(
        model_source=str(folder / "model"),
        engine_kwargs={**arguments, "max_num_batched_tokens": 16384, "max_num_seqs": 1024},
        batch_size=32,
        max_concurrent_batches=40,
        concurrency=1,
        prepare_multimodal_stage={"enabled": False},
        chat_template_stage={"enabled": False},
        tokenize_stage={"enabled": False},
        detokenize_stage={"enabled": False},
        log_engine_metrics=False,
    )

    def ask(row: dict[str, Any]) -> dict[str, Any]:
        prompt, data = prompt_about("<|image_pad|>"), {"image": picture_of(Path(row["path"]))}
        return {"prompt": prompt, "multimodal_data": data, "sampling_params": _sampling(out)}

    processor = build_processor(config, preprocess=ask, postprocess=lambda row: {"text": row["generated_text"]})
    paths = [{"path": str(path)} for path in sorted((folder / "media").iterdir())]
    began = time.perf_counter()
    rows = iter(processor(ray.data.from_items(paths, override_num_blocks=len(paths) // 32)).iter_rows())
    next(rows)
    started, count = time.perf_counter(), sum(1 for _ in rows)
    assert count == len(paths) - 1
    return {
        "rate": count / (time.perf_counter() - started),
        "first_row_s": round(started - began, 2),
        "seconds": round(time.perf_counter() - began, 2),
    }


def run_pipeline(folder: Path, out: int, output: Path, engine: dict[str, Any]) -> RunSummary:
    """Run the folder's pictures and model through the pipeline, with these settings of `engine`."""
    from pipeline.config import RunConfig
    from pipeline.config_file import LoadedConfig
    from pipeline.run import run

    document = {
        "manifest": {"uri": str(folder / "media")},
        "model": {"type": "qwen2_5_vl", "path": str(folder / "model")},
        "prompt": QUESTION,
        "sampling": _sampling(out),
        "media": {"video": {"num_frames": FRAMES}},
        "engine": {"args": {k: v for k, v in _arguments(folder).items() if k != "model"}, **engine},
        "output": {"uri": str(output), "accept_truncated": True},
    }
    return run(LoadedConfig(RunConfig.model_validate(document), document))


def _pipeline(folder: Path, out: int, workers: int) -> dict[str, Any]:
    summary = run_pipeline(folder, out, folder / f"out-{workers}", {"render_workers": workers})
    assert summary.ok == summary.rows, summary
    first, last = summary.first_answer_seconds or 0.0, summary.last_answer_seconds or 0.0
    return {
        "rate": summary.rows_per_second,
        "after_first_batch": round((summary.rows - 32) / (last - first), 2) if last > first else None,
        "first_row_s": first,
        "start": summary.engine_start_seconds,
        "seconds": summary.seconds,
        "idle": summary.waiting_seconds["engine idle"],
        **{name: value for name, value in next(iter(summary.replicas.values())).items() if name in _TOLD},
        "bottleneck": summary.bottleneck,
    }


VARIANTS: dict[str, Callable[[Path, int, int], dict[str, Any]]] = {
    "prerendered": _prerendered,
    "generate": _generate,
    "ray_data_llm": _ray_data_llm,
    "pipeline": _pipeline,
}

if __name__ == "__main__":
    main()
