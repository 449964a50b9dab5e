"""The pipeline against a bare AsyncLLM loop: the same files, prompts and engine settings, in one run.

    python -m benchmarks.against_bare_loop --images 1200 --rounds 3

Both rates are images per second from the engine's first answer, which compiles its kernels, to the last.
Ray runs its workers, and so the engine, at niceness 15; the bare loop is given the same, so that other
programs of the machine disturb both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo.make_dataset import make_dataset
from pipeline.config_file import LoadedConfig, load_config

IN_FLIGHT = 64


def main() -> None:
    """Alternate between the two, each in a process of its own, and print rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--config", default="conf/quickstart.yaml")
    parser.add_argument("--child", choices=["pipeline", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--manifest", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        overrides = [f"manifest.uri={arguments.manifest}", f"output.uri={arguments.output}"]
        loaded = load_config(arguments.config, overrides)
        run = _pipeline if arguments.child == "pipeline" else _bare
        print(json.dumps(run(loaded)))
        return
    rates: dict[str, list[float]] = {"pipeline": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        manifest = make_dataset(Path(folder) / "data", shapes=arguments.images, texts=0, videos=0, seed=7)
        for number in range(arguments.rounds):
            for name in ("bare", "pipeline") if number % 2 else ("pipeline", "bare"):
                output = f"{folder}/out-{number}"
                command = ["nice", "-n", "15"] if name == "bare" else []
                command += [sys.executable, "-m", "benchmarks.against_bare_loop", "--child", name]
                command += ["--config", arguments.config, "--manifest", str(manifest), "--output", output]
                child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                found = json.loads(child.stdout.splitlines()[-1])
                rates[name].append(found["rate"])
                print(f"round {number + 1}  {name:<9} {found['rate']:6.2f} images/s, {found['right']} right")
    middle = {name: statistics.median(values) for name, values in rates.items()}
    print(f"median: pipeline {middle['pipeline']:.2f}, bare loop {middle['bare']:.2f} images/s; ", end="")
    print(f"ratio {middle['pipeline'] / middle['bare']:.3f}")


def _pipeline(loaded: LoadedConfig) -> dict[str, Any]:
    import pyarrow.dataset as ds

    from pipeline.run import run

    summary = run(loaded)
    table = ds.dataset(summary.output, format="parquet").to_table(columns=["text", "answer"])
    pairs = zip(table["text"].to_pylist(), table["answer"].to_pylist(), strict=True)
    return {"rate": summary.rows_per_second, "right": sum(text == answer for text, answer in pairs)}


def _bare(loaded: LoadedConfig) -> dict[str, Any]:
    """What one would write by hand: open, ask, collect, so many at once."""
    from PIL import Image
    from vllm import AsyncEngineArgs, SamplingParams
    from vllm.sampling_params import RequestOutputKind
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM

    from pipeline.plan import make_plan
    from pipeline.preview import first_prompts

    plan = make_plan(loaded)
    prompt = first_prompts(plan, 1)[0].prompt
    manifest = Path(loaded.run.manifest.uri)
    rows = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]
    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(**plan.arguments, model=plan.absolute_model, disable_log_stats=True),
        usage_context=UsageContext.LLM_CLASS,
    )
    sampling = SamplingParams(**plan.recipe.sampling, output_kind=RequestOutputKind.FINAL_ONLY)
    threads = ThreadPoolExecutor(4)

    async def ask(row: dict[str, Any], gate: asyncio.Semaphore) -> bool:
        async with gate:
            path = manifest.parent / row["image"]
            open_image = lambda: Image.open(path).convert("RGB")  # noqa: E731
            image = await asyncio.get_running_loop().run_in_executor(threads, open_image)
            request = {"prompt": prompt, "multi_modal_data": {"image": image}}
            async for output in engine.generate(request, sampling, row["id"]):
                text = output.outputs[0].text
        return bool(text == row["answer"])

    async def ask_all() -> tuple[float, int]:
        gate = asyncio.Semaphore(IN_FLIGHT)
        first = await ask(rows[0], gate)
        started = time.perf_counter()
        right = await asyncio.gather(*(ask(row, gate) for row in rows[1:]))
        return len(right) / (time.perf_counter() - started), first + sum(right)

    rate, right = asyncio.run(ask_all())
    engine.shutdown()
    return {"rate": rate, "right": right}


if __name__ == "__main__":
    main()
