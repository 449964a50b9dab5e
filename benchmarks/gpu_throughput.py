"""Images per second on one GPU: the pipeline against what else one could run, all in one command.

    python -m benchmarks.gpu_throughput --size 3b --images 2000 --out 64

- `prerendered`: everything rendered before the clock starts: the GPU's own limit.
- `generate`: `LLM.generate` on images decoded before the clock starts.
- `ray_data_llm`: `ray.data.llm`'s vLLM processor, its engine set as the others', from files to rows, once its
  engine is up.
- `pipeline:N`: this pipeline, from files to Parquet, with N render workers, once an engine is up.

Dummy weights, distinct 1024 x 768 JPEGs (`--clips --images 200`: 16 frames of 10 s of 720p each), greedy, a
fixed number of output tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
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
    prompts_about,
)
from pipeline.report import RunSummary

RESULT = "result: "
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
    parser.add_argument("--engine-args", type=json.loads, default={}, help="JSON, for each variant's engine")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    ARGUMENTS.update(arguments.engine_args)
    if arguments.child:
        variant, folder = arguments.child
        name, _, workers = variant.partition(":")
        print(RESULT + json.dumps(VARIANTS[name](Path(folder), arguments.out, int(workers or 0))), flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_model(arguments.size, Path(folder) / "model")
        (make_clips if arguments.clips else make_pictures)(Path(folder) / "media", arguments.images)
        for variant in arguments.variants.split(","):
            command = [sys.executable, "-m", "benchmarks.gpu_throughput", "--child", variant, folder]
            started = time.time()
            command += ["--out", str(arguments.out), "--engine-args", json.dumps(arguments.engine_args)]
            child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            told = [line for line in child.stdout.splitlines() if line.startswith(RESULT)]
            if child.returncode or not told:
                print(f"{variant:<16} failed ({child.returncode})", flush=True)
                continue
            found = json.loads(told[-1].removeprefix(RESULT))
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


def _prerendered(folder: Path, out: int, workers: int, by_file: bool = True) -> dict[str, Any]:
    from pipeline.engine.base import Request
    from pipeline.engine.figures import EngineFigures
    from pipeline.engine.vllm import VllmEngine

    figures = EngineFigures()

    async def measure() -> float:
        engine = VllmEngine(_arguments(folder), workers or 8, figures=figures, by_file=by_file)
        prompts = prompts_about(folder / "media")
        rendered = await asyncio.gather(*map(engine.render, prompts))
        asks = [Request(str(n), prompt, _sampling(out)) for n, prompt in enumerate(rendered)]
        await asyncio.gather(*(engine.generate(ask) for ask in asks[:8]))
        started = time.perf_counter()
        await asyncio.gather(*(engine.generate(ask) for ask in asks[8:]))
        seconds = time.perf_counter() - started
        engine.close()
        return (len(asks) - 8) / seconds

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
    from benchmarks.ray_data_llm import measure

    return measure(folder / "media", _arguments(folder), _sampling(out))


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
    "prerendered_socket": functools.partial(_prerendered, by_file=False),
    "generate": _generate,
    "ray_data_llm": _ray_data_llm,
    "pipeline": _pipeline,
}

if __name__ == "__main__":
    main()
