"""Decoders that do what damaged files have made real ones do; a child process imports them by name."""

import os
import re
import signal
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from pipeline.errors import Code, ItemError
from pipeline.media.image import decode_image
from pipeline.media.shrink import PixelBudget

_poisoned = False


def size(data: bytes, **_: object) -> npt.NDArray[np.uint8]:
    """What a good decoder does: one pixel for each byte."""
    return np.frombuffer(data, np.uint8).reshape(1, -1, 1)


def pid(data: bytes) -> tuple[npt.NDArray[np.uint8], dict[str, int]]:
    return np.zeros((1, 1, 3), np.uint8), {"pid": os.getpid()}


def refuse(data: bytes) -> npt.NDArray[np.uint8]:
    raise ItemError(Code.NOT_MEDIA, f"{len(data)} bytes of something else")


def die(data: bytes) -> npt.NDArray[np.uint8]:
    os.kill(os.getpid(), int(data))
    raise AssertionError("alive")


def die_once(data: bytes) -> npt.NDArray[np.uint8]:
    """Dies of what an earlier file did to the process."""
    if _poisoned:
        os.kill(os.getpid(), signal.SIGSEGV)
    return size(data)


def poison(data: bytes) -> npt.NDArray[np.uint8]:
    global _poisoned  # noqa: PLW0603
    _poisoned = True
    return size(data)


def exit_by_itself(data: bytes) -> npt.NDArray[np.uint8]:
    os._exit(3)


def sleep_for_ever(data: bytes) -> npt.NDArray[np.uint8]:
    Path(data.decode()).write_text(str(os.getpid())) if data else None
    while True:
        time.sleep(1)


def loop_in_c(data: bytes) -> npt.NDArray[np.uint8]:
    """Never gives Python's lock back: no thread and no signal handler of Python's runs any more."""
    Path(data.decode()).write_text(str(os.getpid())) if data else None
    re.match("(a+)+$", "a" * 60 + "b")
    raise AssertionError("ended")


def fill_memory(data: bytes) -> npt.NDArray[np.uint8]:
    held = []
    while True:
        held.append(np.ones(2**24, np.uint8))


def leak(data: bytes) -> npt.NDArray[np.uint8]:
    """Keeps more with each file."""
    kept.append(np.ones(2**27, np.uint8))
    return size(data)


kept: list[npt.NDArray[np.uint8]] = []


def wait_for_file(data: bytes) -> npt.NDArray[np.uint8]:
    """Ends when there is a file of this name."""
    while not Path(data.decode()).exists():
        time.sleep(0.01)
    return size(data)


def fail(data: bytes) -> npt.NDArray[np.uint8]:
    raise ZeroDivisionError("in the decoder")


def need(data: bytes) -> npt.NDArray[np.uint8]:
    import no_such_module  # noqa: F401

    return size(data)


def short_of_memory_in_floats(data: bytes) -> npt.NDArray[np.uint8]:
    """Decodes an image, where memory ends as the tags of a TIFF of floats are read."""
    with patch("pipeline.media.deep.TiffImagePlugin") as plugin:
        plugin.ImageFileDirectory_v2.side_effect = MemoryError
        return decode_image(data, budget=PixelBudget(), max_pixels=10**6)


def short_of_memory_in_completing(data: bytes) -> npt.NDArray[np.uint8]:
    """Decodes an image, where memory ends as the end that a JPEG lacks is made up."""
    with patch("pipeline.media.image.completed", side_effect=MemoryError):
        return decode_image(data, budget=PixelBudget(), max_pixels=10**6, recover=True)


def talk(data: bytes) -> npt.NDArray[np.uint8]:
    """Prints, as C libraries do."""
    print("a warning of the decoder", file=sys.stdout, flush=True)
    return size(data)
