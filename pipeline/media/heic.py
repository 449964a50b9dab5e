"""HEIC pictures, by pillow-heif where it is installed (the extra `heic`)."""

from __future__ import annotations

from functools import cache


@cache
def _register() -> None:
    import pillow_heif

    pillow_heif.options.DECODE_THREADS = 1  # as many workers as cores decode at the same time
    pillow_heif.register_heif_opener()


def heic_formats() -> tuple[str, ...]:
    """Return Pillow's names of the formats that HEIC adds; none where pillow-heif is not installed.

    It turns pictures upright by itself.
    """
    try:
        _register()
    except ImportError:
        return ()
    return ("HEIF",)
