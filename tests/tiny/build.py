"""Builds a tiny model once for this code and these libraries, and finds it again the next time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from tests.tiny import internvl, llava, llava_onevision, qwen, smolvlm

KINDS: dict[str, Callable[[Path], None]] = {
    "idefics3": smolvlm.build_idefics3,
    "internvl_chat": internvl.build,
    "llava": llava.build,
    "llava-onevision": llava_onevision.build,
    "qwen2_5_vl": qwen.build_2_5,
    "qwen3_vl": qwen.build_3,
    "smolvlm": smolvlm.build,
}
"""Names in `conf/models` (and idefics3) → what builds such a model into an empty folder."""


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
