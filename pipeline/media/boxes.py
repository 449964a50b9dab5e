"""The box structure of ISO media files (MP4, MOV, HEIF, AVIF), read safely from untrusted bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Real files have a handful of boxes at each level; this bounds the work on hostile ones.
_MAX_BOXES = 10_000
# Where a VisualSampleEntry has its width and height, after its own header (ISO/IEC 14496-12, 12.1.3).
_WIDTH_IN_ENTRY = 24


@dataclass(frozen=True)
class Box:
    """One box: its four-character type and where its content lies in the file.

    `end` is what the box declares, so it may lie past the end of the bytes that are there.
    """

    kind: bytes
    start: int
    end: int


def boxes(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Box]:
    """Yield the boxes between `start` and `end`, in order, until one makes no sense or passes the end."""
    end = len(data) if end is None else min(end, len(data))
    for _ in range(_MAX_BOXES):
        if start + 8 > end:
            return
        size, header = int.from_bytes(data[start : start + 4], "big"), 8
        if size == 1:
            size, header = int.from_bytes(data[start + 8 : start + 16], "big"), 16
        elif size == 0:
            size = end - start
        if size < header:
            return
        yield Box(data[start + 4 : start + 8], start + header, start + size)
        start += size


def is_cut(data: bytes) -> bool:
    """Whether an ISO media file ends too early: a box passes its end, or none describes the rest."""
    described = False
    for box in boxes(data):
        described = described or box.kind in {b"moov", b"meta"}
        if box.end > len(data) and box.kind in {b"moov", b"meta", b"mdat", b"moof"}:
            return True
    return not described


def declared_sizes(data: bytes) -> list[tuple[int, int]]:
    """Return the (width, height) that each video track of an MP4 or MOV declares, before any rotation.

    Empty where the file has none that can be read. Only the file's word: a decoder may find other sizes.
    """
    sizes = []
    for track in _inside(data, [b"moov", b"trak"]):
        handlers = [data[box.start + 8 : box.start + 12] for box in _within(data, track, [b"mdia", b"hdlr"])]
        if handlers != [b"vide"]:
            continue
        for table in _within(data, track, [b"mdia", b"minf", b"stbl", b"stsd"]):
            for entry in boxes(data, table.start + 8, table.end):
                at = entry.start + _WIDTH_IN_ENTRY
                width, height = (
                    int.from_bytes(data[at : at + 2], "big"),
                    int.from_bytes(data[at + 2 : at + 4], "big"),
                )
                if width and height:
                    sizes.append((width, height))
    return sizes


def _inside(data: bytes, path: list[bytes]) -> list[Box]:
    return _within(data, Box(b"", 0, len(data)), path)


def _within(data: bytes, parent: Box, path: list[bytes]) -> list[Box]:
    found = [parent]
    for kind in path:
        found = [box for outer in found for box in boxes(data, outer.start, outer.end) if box.kind == kind]
    return found
