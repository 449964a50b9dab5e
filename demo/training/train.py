"""Trains the model from nothing on pictures that are drawn while it learns.

python -m demo.training.train --out out/shapes-vl
python -m demo.training.train --out out/smoke --device cpu --seconds 20
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch

from demo.training.chunks import TailEncoder
from demo.training.feed import Feed
from demo.training.grids import pick_grid
from demo.training.held_out import HeldOut
from demo.training.loader import Loader
from demo.training.model import TRAINING_ONLY, ShapesVL
from demo.training.objective import measure_losses
from demo.training.pools import Batch, Pool, Pools
from demo.training.positions import Clock
from demo.training.prompt import PROMPT_HEAD
from demo.training.settings import Settings, for_cpu
from demo.training.tokenizer import build_tokenizer
from demo.training.weights import AveragedWeights, save_weights

_BATCH_SEED = 5
_CLOCKS = tuple(Clock(abs(step), text_after_time=step < 0) for step in (1, 2, 2, 2, 4, -1, -2, -2, -2, -4))


class Trainer:
    """The state of a run."""

    def __init__(self, settings: Settings, feed: Feed, encoder: TailEncoder, prompt: list[int]) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self.steps = 0
        self.samples = 0
        self.pools = Pools(self.device, settings.pool_bytes)
        self._loader = Loader(feed, self.pools, self.device)
        self._rng = random.Random(_BATCH_SEED)
        self._numpy_rng = np.random.default_rng(_BATCH_SEED)
        self._prompt = torch.tensor(prompt, device=self.device)
        torch.manual_seed(settings.seed)
        self.model = ShapesVL().to(self.device)
        self.average = AveragedWeights(self.model)
        self._optimizer = _make_optimizer(self.model, settings)
        self._held_out = HeldOut(encoder, self.device, settings.held_out)
        self._sums = torch.zeros(4, device=self.device)
        self._summed_steps = 0

    def load_first(self) -> None:
        """Waits for the first samples."""
        self._loader.load_first(self.settings.first_samples)

    def step(self, progress: float) -> None:
        """Learns from some batches; `progress` is the share of the run's time that has passed."""
        settings = self.settings
        warm_up = min(1, (self.steps + 1) / settings.warm_up_steps)
        decay = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))
        for group in self._optimizer.param_groups:
            group["lr"] = settings.learning_rate * warm_up * decay
        hint_weight = 0.5 * max(0.1, 1 - progress * 1.2)
        sized_pools = [(pool, self._batch_size(pool)) for pool in self._pick_pools()]
        total = sum(size for _, size in sized_pools)
        for pool, size in sized_pools:
            self._loader.load(12)
            batch = pool.take(self._numpy_rng.integers(0, pool.count, size))
            self._learn(batch, size / total, hint_weight)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip, foreach=True)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self.samples += total
        self.average.update(self.steps)
        self._sums[3] += norm
        self._summed_steps += 1

    def measure(self) -> dict[str, float]:
        """The share of held-out questions answered right, by kind."""
        return self._held_out.measure(self.model, self._prompt)

    def mean_losses(self) -> str:
        """Means since the last call, for the log."""
        means = (self._sums / max(1, self._summed_steps)).tolist()
        self._sums.zero_()
        self._summed_steps = 0
        names = ("answer", "label", "order", "gradient")
        return " ".join(f"{name} {mean:.4f}" for name, mean in zip(names, means, strict=True))

    def _learn(self, batch: Batch, share: float, hint_weight: float) -> None:
        clock = self._rng.choice(_CLOCKS) if batch.grid.frames > 1 else Clock()
        losses = measure_losses(self.model, batch, self._prompt, clock)
        loss = losses.answer + hint_weight * (losses.label + losses.order)
        (loss * share).backward()
        self._sums[:3] += torch.stack([losses.answer, losses.label, losses.order]).detach() * share

    def _pick_pools(self) -> list[Pool]:
        pools: list[Pool] = []
        while len(pools) < self.settings.groups:
            grid = pick_grid(self._rng, self.settings.video_share)
            pool = self.pools.find(grid, self.settings.pool_least)
            if pool:
                pools.append(pool)
            elif self._rng.random() < 0.05:
                self._loader.load(8)
        return pools

    def _batch_size(self, pool: Pool) -> int:
        fitting = max(16, self.settings.group_patches // pool.grid.patches)
        return min(self.settings.group_most, fitting, 2 * pool.count)


def _make_optimizer(model: ShapesVL, settings: Settings) -> torch.optim.Optimizer:
    """AdamW; norms and biases do not decay."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
        betas=settings.betas,
        fused=settings.device == "cuda",
    )


class _Alarm:
    """Rings once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = time.monotonic()

    def rings(self) -> bool:
        if time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True


def run(trainer: Trainer, feed: Feed, out: Path) -> None:
    """Trains as long as the settings say; writes `weights.safetensors` and `average.safetensors`."""
    settings = trainer.settings
    report, measure = _Alarm(settings.report_seconds), _Alarm(settings.measure_seconds)
    save = _Alarm(settings.save_seconds)
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < settings.seconds:
        feed.level.value = min(1.0, elapsed / settings.ramp_seconds)
        trainer.step(elapsed / settings.seconds)
        if report.rings():
            counts = f"step {trainer.steps} seen {trainer.samples} drawn {trainer.pools.drawn}"
            print(f"{elapsed:5.0f} s {counts} {trainer.mean_losses()}", flush=True)
        if measure.rings():
            print("held out:", json.dumps(trainer.measure()), flush=True)
        if save.rings():
            trainer.average.save(out / "average.safetensors")
    print(f"{trainer.steps} steps on {trainer.samples} samples, {trainer.pools.drawn} drawn")
    print("held out:", json.dumps(trainer.measure()))
    trainer.average.save(out / "average.safetensors")
    save_weights(trainer.model, out / "weights.safetensors")


def prepare_torch(device: str) -> None:
    """Settings of the process that make a GPU quick."""
    if device == "cuda":
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high")
        # cuDNN's attention makes a plan for every new shape, 0.3 s each.
        torch.backends.cuda.enable_cudnn_sdp(False)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights and the tokenizer")
    parser.add_argument("--seconds", type=float, default=Settings.seconds)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--workers", type=int, help="drawing processes")
    options = parser.parse_args()
    settings = for_cpu(options.seconds) if options.device == "cpu" else Settings(seconds=options.seconds)
    tokenizer = build_tokenizer()
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.out / "tokenizer.json"))
    feed = Feed(tokenizer, options.workers or settings.workers, settings.video_share, settings.seed)
    try:
        prepare_torch(settings.device)
        prompt = tokenizer.encode(PROMPT_HEAD).ids
        trainer = Trainer(settings, feed, TailEncoder(tokenizer), prompt)
        exported = sum(
            parameter.numel()
            for name, parameter in trainer.model.named_parameters()
            if not name.startswith(TRAINING_ONLY)
        )
        print(f"{exported:,} parameters", flush=True)
        trainer.load_first()
        run(trainer, feed, options.out)
    finally:
        feed.stop()


if __name__ == "__main__":
    main()
