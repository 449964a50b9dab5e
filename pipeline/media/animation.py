"""Pictures of several frames: the one that a viewer sees first."""

from __future__ import annotations

from PIL import Image

# Animated stickers may begin with a few empty frames; a file may have thousands.
_MOST_EMPTY = 16


def show_first_visible(image: Image.Image) -> None:
    """Move an open animation (GIF, WebP, APNG) to its first frame that shows anything.

    Of an APNG with a picture for viewers that know no animations, that picture is none of its frames. Other
    files (the pages of a TIFF too) stay where they are: at the first.
    """
    if image.format not in {"GIF", "WEBP", "PNG"} or not getattr(image, "is_animated", False):
        return
    first = 1 if getattr(image, "default_image", False) else 0
    for frame in range(first, min(first + _MOST_EMPTY, getattr(image, "n_frames", 1))):
        try:
            image.seek(frame)
            image.load()
        except EOFError:
            break
        if not image.has_transparency_data or image.convert("RGBA").getchannel("A").getbbox() is not None:
            return
    image.seek(first)
