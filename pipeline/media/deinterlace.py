"""Interlaced frames without combs: the rows of one field, and what lies between them by the edges around."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av.filter


def progressive(frame: Any) -> Any:
    """Return a decoded frame whole: itself, or where it says that it is interlaced, made from its first field.

    By FFmpeg's `estdif`, which looks at this frame alone: frames are sampled far apart, and those beside them
    are not at hand. An interlaced frame in a pixel format that the filter does not know is returned as it is.
    """
    if not frame.interlaced_frame or not frame.format.name.startswith(("yuv", "yuvj")):
        return frame
    graph = av.filter.Graph()
    graph.threads = 1
    source = graph.add_buffer(
        width=frame.width,
        height=frame.height,
        format=frame.format,
        time_base=frame.time_base or Fraction(1, 25),
    )
    graph.link_nodes(source, graph.add("estdif", "mode=frame"), graph.add("buffersink")).configure()
    graph.vpush(frame)
    graph.vpush(None)
    return graph.vpull()
