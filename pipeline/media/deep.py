"""Colours of 16 bits or floats a sample in PNG and TIFF, for which Pillow has no mode: FFmpeg reads them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Literal, cast

import av
import numpy as np
import numpy.typing as npt
from av.error import FFmpegError
from PIL import Image, TiffImagePlugin

from pipeline.errors import Code, ItemError
from pipeline.media.exif import turned

# Tags of TIFF 6.0. Photometric 2 is RGB, planar 2 one plane a channel, an extra sample of 2 plain transparency,
# sample format 3 floats.
_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 262, 274
_PLANAR, _EXTRA, _FORMAT, _OFFSETS, _COUNTS, _TILES = 284, 338, 339, 273, 279, 322
_FLOAT = 3
# Where a PNG has its bit depth and colour type (2 RGB, 4 grey and alpha, 6 RGBA).
_PNG_DEPTH, _PNG_COLOUR = 24, 25
_FULL = 65535
# At a time, since what is reckoned with takes twice as much memory as the samples.
_ROWS = 256
# Above 1.0 by what resampling overshoots, a float picture is still one of 0..1.
_OVERSHOOT = 1.5


@dataclass(frozen=True)
class DeepFile:
    """A picture whose samples are deeper than Pillow reads them.

    `size` is (width, height) as stored, `orientation` a TIFF's own; `planar`: each channel is stored by itself.
    """

    codec: Literal["png", "tiff"]
    size: tuple[int, int]
    orientation: int = 1
    planar: bool = False

    @classmethod
    def of(cls, image: Image.Image, data: bytes) -> DeepFile | None:
        """What an open PNG or TIFF is, before it is loaded; None where Pillow reads it right."""
        if image.format == "PNG" and not getattr(image, "is_animated", False):
            deep = len(data) > _PNG_COLOUR and data[_PNG_DEPTH] == 16 and data[_PNG_COLOUR] in {2, 4, 6}
            return cls("png", image.size) if deep else None
        tags: Any = getattr(image, "tag_v2", {})
        # FFmpeg makes black pictures of tiles.
        if image.format == "TIFF" and image.tell() == 0 and _TILES not in tags:
            bits = tags.get(_BITS, ())
            plain_alpha = len(bits) == 3 or (len(bits) == 4 and tags.get(_EXTRA) == (2,))
            if set(bits) == {16} and plain_alpha and tags.get(_PHOTOMETRIC) == 2:
                size, planar = (tags[_WIDTH], tags[_HEIGHT]), tags.get(_PLANAR) == 2
                return cls("tiff", size, tags.get(_ORIENTATION, 1), planar)
        return None

    def rgb(self, data: bytes) -> Image.Image | None:
        """Return the picture as mode RGB, each sample rounded to 8 bits, transparency laid over white.

        A TIFF is upright, as Pillow's are; a PNG is as it is stored.
        Call it once Pillow has loaded the file: FFmpeg alone takes what damage has left for the whole.
        None for the rare files that FFmpeg does not read (some compressions): Pillow's reading is
        at most one step of 256 off. Not so of planes, for which this raises ItemError DECODE_CORRUPT.
        """
        try:
            samples = _samples(data, self.codec, self.size)
        except ItemError:
            if self.planar:
                raise
            return None
        return turned(Image.fromarray(_rounded(samples)), self.orientation)


def float_rgb(data: bytes, max_pixels: int) -> Image.Image | None:
    """Return a TIFF of three 32-bit floats a pixel as mode RGB; None for any other file.

    Floats of 0 to 1 become 0 to 255; larger ones take the smallest of 255, 65535 and their own largest value.
    Raises ItemError: TOO_LARGE, DECODE_TRUNCATED or DECODE_CORRUPT.
    """
    try:
        tags = TiffImagePlugin.ImageFileDirectory_v2(data[:8])
        file = io.BytesIO(data)
        file.seek(tags.next)
        tags.load(file)
        bits, formats = tags.get(_BITS, ()), tags.get(_FORMAT, ())
        size = int(tags[_WIDTH]), int(tags[_HEIGHT])
        ends = [at + count for at, count in zip(tags[_OFFSETS], tags[_COUNTS], strict=True)]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - not such a file; what it is instead has been found out before
        return None
    if bits != (32, 32, 32) or set(formats) != {_FLOAT}:
        return None
    if size[0] * size[1] > max_pixels:
        why = f"the image has {size[0]}x{size[1]} pixels, more than max_pixels={max_pixels}"
        raise ItemError(Code.TOO_LARGE, f"{why}: raise it or shrink the file")
    if max(ends) > len(data):  # FFmpeg would make up what is missing
        raise ItemError(Code.DECODE_TRUNCATED, "the TIFF image ends before its pixels do: fetch it again")
    samples = np.nan_to_num(_samples(data, "tiff", size), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(samples.max(initial=0))
    full = 1.0 if largest <= _OVERSHOOT else next((f for f in (255.0, 65535.0) if largest <= f), largest)
    return Image.fromarray(np.clip(samples * (255 / full) + 0.5, 0, 255).astype(np.uint8))


def _samples(data: bytes, codec: str, size: tuple[int, int]) -> npt.NDArray[Any]:
    """Return (H, W, channels) samples of the first picture in the file."""
    try:
        context = cast(av.VideoCodecContext, av.CodecContext.create(codec, "r"))
        context.thread_count = 1
        context.options = {"max_pixels": str(size[0] * size[1] + 2**20)}
        frames = [*context.decode(av.Packet(data)), *context.decode(None)]
        frame = frames[0]
        name = frame.format.name
        samples = _grey_alpha(frame, name) if name.startswith("ya16") else frame.to_ndarray()
    except (FFmpegError, IndexError, ValueError) as error:
        raise _unreadable(codec, type(error).__name__) from error
    if samples.shape[:2] != size[::-1] or samples.dtype not in (np.uint16, np.float32):
        raise _unreadable(codec, f"{samples.dtype} samples of {samples.shape}")
    return samples


def _grey_alpha(frame: Any, name: str) -> npt.NDArray[np.uint16]:
    plane = frame.planes[0]
    rows = np.frombuffer(plane, ">u2" if name.endswith("be") else "<u2").reshape(frame.height, -1)
    samples = rows[:, : frame.width * 2].reshape(frame.height, frame.width, 2)
    return samples[..., [0, 0, 0, 1]].astype(np.uint16)


def _rounded(samples: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    rounded = np.empty((*samples.shape[:2], 3), np.uint8)
    for top in range(0, len(samples), _ROWS):
        wide = samples[top : top + _ROWS].astype(np.uint32)
        if samples.shape[2] == 4:
            alpha = wide[..., 3:]
            # 65535² and what is added for rounding stay below 2³².
            wide = (wide[..., :3] * alpha + _FULL // 2) // _FULL + (_FULL - alpha)
        rounded[top : top + _ROWS] = (np.minimum(wide, _FULL) + 128) // 257
    return rounded


def _unreadable(codec: str, why: str) -> ItemError:
    return ItemError(
        Code.DECODE_CORRUPT, f"the {codec.upper()} of deep samples is damaged ({why}): replace the file"
    )
