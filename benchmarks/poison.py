"""A run of which a part of the items kills the engine: every other row must be right; the time lost is told.

The demo model on vLLM's CPU build, through the whole pipeline. What kills is a logits processor in the
engine's own process, which ends it without a word when it meets a marked question.

    python -m benchmarks.poison --items 40 --share 0.3
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from vllm.v1.sample.logits_processor import LogitsProcessor

from pipeline.config_file import load_config
from pipeline.run import run

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE = REPOSITORY / "demo/dataset"
MARK = "@@@@@@@@"


class Deadly(LogitsProcessor):
    """Ends the engine's process at the first request whose prompt has the mark."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        from transformers import AutoTokenizer

        self._mark = AutoTokenizer.from_pretrained(vllm_config.model_config.model).encode(MARK)

    def is_argmax_invariant(self) -> bool:
        """It changes nothing."""
        return True

    def update_state(self, batch_update: Any) -> None:
        """Look at the prompts of new requests."""
        for _, _, prompt, _ in batch_update.added if batch_update else ():
            text = ",".join(map(str, prompt or ()))
            if ",".join(map(str, self._mark)) in text:
                os._exit(1)

    def apply(self, logits: Any) -> Any:
        """As they are."""
        return logits


def main() -> None:
    """Make the manifest, run it, compare every row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    os.environ["PYTHONPATH"] = f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"
    with tempfile.TemporaryDirectory() as folder:
        poison = _write_manifest(Path(folder) / "manifest.jsonl", arguments)
        summary = run(
            load_config(
                REPOSITORY / "conf/quickstart.yaml",
                [
                    f"manifest.uri={folder}/manifest.jsonl",
                    f"output.uri={folder}/out",
                    f"storage.allowed_roots=[{SAMPLE}]",
                    "engine.args.logits_processors=[benchmarks.poison:Deadly]",
                    "output.batch_rows=16",
                ],
            )
        )
        rows = _rows(Path(folder) / "out")
    crashed = {row["id"] for row in rows if row["error_code"] == "engine_crash"}
    wrong = [row["id"] for row in rows if row["id"] not in poison and row["text"] != row["answer"]]
    (replica,) = summary.replicas.values()
    blamed = f"found {len(crashed & poison)}, wrongly blamed {len(crashed - poison)}"
    print(f"{len(rows)} rows, {len(poison)} of them poison: {blamed}")
    print(f"other rows wrong: {wrong}")
    print(f"attempts of poison: {_attempts(rows, poison)}; of others: {_attempts(rows, poison, others=True)}")
    lost, deaths = replica["lost_seconds"], int(replica["restarts"])
    print(
        f"{deaths} deaths; {lost:.0f} of {summary.seconds:.0f} s lost, {lost / len(poison):.1f} s a poison item"
    )
    if wrong or crashed != poison or len(rows) != arguments.items:
        raise SystemExit(1)


def _write_manifest(path: Path, arguments: argparse.Namespace) -> set[str]:
    chance = random.Random(arguments.seed)
    lines = (SAMPLE / "manifest.jsonl").read_text("utf-8").splitlines()
    shapes = [row for row in map(json.loads, lines) if row["id"].startswith("shapes-")]
    rows = [{**shapes[n % len(shapes)], "id": f"item-{n:05}"} for n in range(arguments.items)]
    poison = {row["id"] for row in chance.sample(rows, round(arguments.share * len(rows)))}
    for row in rows:
        row["image"] = str(SAMPLE / row["image"])
        if row["id"] in poison:
            row["question"] += MARK
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return poison


def _rows(output: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return [row for file in output.glob("recipe=*/*.parquet") for row in pq.read_table(file).to_pylist()]


def _attempts(rows: list[dict[str, Any]], poison: set[str], others: bool = False) -> dict[int, int]:
    return dict(sorted(Counter(row["attempts"] for row in rows if (row["id"] in poison) != others).items()))


if __name__ == "__main__":
    main()
