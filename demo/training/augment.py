"""Changes pixels on the device: brightness, tint, noise and gradients; and normalises them."""

import torch
from torch import Tensor

IMAGE_MEAN = (0.48145466, 0.4578275, 0.40821073)
IMAGE_STD = (0.26862954, 0.26130258, 0.27577711)


def normalise(pixels: Tensor) -> Tensor:
    """0 to 1 in the last axis's three channels, to what the vision tower takes."""
    mean = torch.tensor(IMAGE_MEAN, device=pixels.device)
    std = torch.tensor(IMAGE_STD, device=pixels.device)
    return (pixels - mean) / std


def augment(pixels: Tensor) -> Tensor:
    """[batch, frames, height, width, 3] of 0 to 1, each sample changed in its own way."""
    batch, _, height, width, _ = pixels.shape
    device = pixels.device

    def chance(channels: int = 1) -> Tensor:
        return torch.rand(batch, 1, 1, 1, channels, device=device)

    pixels = pixels * (0.88 + 0.2 * chance()) + (chance(3) - 0.5) * 0.06
    noise_strength = (chance() - 0.4).clamp_(min=0) * 0.1
    noise_type = torch.bfloat16 if device.type == "cuda" else torch.float32
    pixels = pixels + torch.randn(pixels.shape, device=device, dtype=noise_type) * noise_strength
    gradient = (chance() < 0.25) * 0.16 * (chance() - 0.5)
    down = torch.linspace(-0.5, 0.5, height, device=device).view(1, 1, height, 1, 1)
    across = torch.linspace(-0.5, 0.5, width, device=device).view(1, 1, 1, width, 1)
    pixels = pixels + gradient * down - gradient * (chance() - 0.5) * 2 * across
    return pixels.clamp_(0, 1)
