"""Builds a tiny model once for this code and these libraries, and finds it again the next time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import torch  # noqa: F401 (before transformers: see pipeline/engine/cpu_torch.py)

from tests.tiny import gemma, glm, internvl, llava, llava_next, llava_onevision, others, pixtral, qwen, smolvlm

KINDS: dict[str, Callable[[Path], None]] = {
    "NVLM_D": internvl.build_nvlm,
    "aria": others.build_aria,
    "blip-2": others.build_blip2,
    "command_a_vision": others.build_command_a,
    "eagle2_5": internvl.build_eagle,
    "exaone4_5": qwen.build_exaone,
    "gemma3": gemma.build_3,
    "gemma4": gemma.build_4,
    "glm4_1v": glm.build_4_1,
    "glm4_5v": glm.build_4_5,
    "glm_ocr": glm.build_ocr,
    "h2ovl_chat": internvl.build_h2ovl,
    "idefics3": smolvlm.build_idefics3,
    "interns1": others.build_interns1,
    "internvl_chat": internvl.build,
    "lfm2_vl": others.build_lfm2,
    "lightonocr": pixtral.build_lighton,
    "llama4": others.build_llama4,
    "llava": llava.build,
    "llava-next": llava_next.build,
    "llava-next-video": llava_next.build_video,
    "llava-onevision": llava_onevision.build,
    "mistral3": pixtral.build_mistral3,
    "paligemma": gemma.build_paligemma,
    "paligemma2": gemma.build_paligemma2,
    "pixtral_hf": pixtral.build,
    "qwen2_vl": qwen.build_2,
    "qwen2_5_vl": qwen.build_2_5,
    "qwen2_5_omni": qwen.build_omni,
    "qwen3_vl": qwen.build_3,
    "qwen3_vl_moe": qwen.build_3_moe,
    "qwen3_5": qwen.build_3_5,
    "qwen3_5_moe": qwen.build_3_5_moe,
    "skywork_chat": internvl.build_skywork,
    "smolvlm": smolvlm.build,
}
"""Names in `conf/models` → what builds such a model into an empty folder."""


def default_cache() -> Path:
    """Where tests keep what takes long to make: `$FRAMESCRIBE_TEST_CACHE`, else below `~/.cache`."""
    root = os.environ.get("FRAMESCRIBE_TEST_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "framescribe" / "tiny-models"


def tiny_model(kind: str, cache: Path | None = None) -> Path:
    """The folder of the tiny model of a kind (a key of `KINDS`), built if it is not in the cache.

    The folder's name has a hash of this package's source and the version of transformers, so a change of
    either builds it anew. It appears whole or not at all: two test sessions may build it at once.
    """
    folder = (cache or default_cache()) / _key() / kind
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=folder.parent))
    try:
        KINDS[kind](unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another session was first: its model is the same
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _key() -> str:
    digest = blake2b(version("transformers").encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
