"""Lets PyPI's CUDA builds of torchvision, torchaudio and torchcodec lie beside a CPU-only torch.

vLLM's CPU build brings a CPU torch, but its requirements bring CUDA builds of those three, and importing
them (as transformers does) fails: "operator torchvision::nms does not exist". `register` is an entry point
of the group `torch.backends`: torch calls it at the end of `import torch`, in every process, which is early
enough for the processes that vLLM starts before it loads its own plugins. With builds that fit, or with a
CUDA torch, it does nothing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

_kept_alive: list[Any] = []


def register() -> None:
    """Declare the torchvision operators that the mismatched build lacks, and hide the other two."""
    import torch

    if torch.version.cuda or torch.version.hip or _kept_alive:
        return
    if "torchvision" not in sys.modules and _is_cuda_build("torchvision"):
        # Schemas are enough: what image processors use of torchvision is made of plain torch.
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept_alive.append(library)
    for name in ("torchaudio", "torchcodec"):
        if name not in sys.modules and _is_cuda_build(name):
            sys.modules[name] = None  # type: ignore[assignment]


def _is_cuda_build(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        return False
    version = Path(spec.origin).with_name("version.py")
    return version.is_file() and re.search(r"\+cu\d+", version.read_text("utf-8")) is not None
