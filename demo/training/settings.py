"""The numbers of a training run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The defaults are for one H200, on which the model that ships was trained in 760 seconds."""

    seconds: float = 760.0
    device: str = "cuda"
    workers: int = 14
    seed: int = 1
    learning_rate: float = 2e-3
    warm_up_steps: int = 200
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.98)
    gradient_clip: float = 1.0
    groups: int = 4
    """Batches of a step, each of another grid."""
    group_patches: int = 40960
    """Patches of a batch, within 16 to `group_most` samples."""
    group_most: int = 512
    video_share: float = 0.08
    ramp_seconds: float = 110.0
    """How long the difficulty rises from 0 to 1."""
    pool_bytes: int = 300 << 20
    pool_least: int = 48
    """Samples that a grid must have before batches are taken."""
    first_samples: int = 12_000
    """Samples that are drawn before the first step."""
    held_out: int = 24
    """Samples of each grid and kind in the held-out set."""
    report_seconds: float = 10.0
    measure_seconds: float = 25.0
    save_seconds: float = 60.0


def for_cpu(seconds: float) -> Settings:
    """Enough to see on two CPU cores that everything runs; nothing is learnt."""
    return Settings(
        seconds=seconds,
        device="cpu",
        workers=1,
        group_patches=1024,
        group_most=16,
        pool_bytes=8 << 20,
        pool_least=4,
        first_samples=200,
        held_out=1,
        report_seconds=5.0,
    )
