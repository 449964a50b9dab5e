"""Pixels as the picture that vLLM takes, made where it is looked into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image


class PixelPicture(Image.Image):
    """An RGB picture of uint8 (height, width, 3), which it refers to until Pillow asks for its own copy.

    Pickled, it is its pixels. So the process that only sends it to a render worker makes no copy in Pillow's
    storage of four bytes a pixel, and none from there, which would hold its interpreter lock.
    """

    def __init__(self, pixels: npt.NDArray[np.uint8]) -> None:
        super().__init__()
        # What a Pillow plugin sets of a file that is not loaded yet.
        height, width, _ = pixels.shape
        self._mode, self._size = "RGB", (width, height)
        self._pixels = pixels

    def load(self) -> Any:
        """As any picture's, which Pillow calls before it looks into one."""
        if self._im is None:
            self.im = Image.fromarray(self._pixels).im
        return super().load()

    def __reduce__(self) -> Any:
        return PixelPicture, (self._pixels,)
