"""The sparse index of a text file: a few thousand byte offsets, however many rows it has."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pipeline.manifest.manifest import Offsets

FIRST_STRIDE = 256
MAX_OFFSETS = 4096


def index_records(
    found: Iterable[tuple[int, bytes | None]], first: int, size: int, sample: list[bytes], sample_bytes: int
) -> tuple[int, Offsets]:
    """Count the records that begin at byte `first` and note where every `stride`th begins.

    The stride doubles whenever there would be more than MAX_OFFSETS offsets. The records that end before
    `first` + `sample_bytes`, and the first one, are put into `sample`.
    """
    rows, stride, starts = 0, FIRST_STRIDE, [first]
    for end, record in found:
        if record is not None and (end <= first + sample_bytes or not rows):
            sample.append(record)
        rows += 1
        if rows % stride == 0:
            starts.append(end)
            if len(starts) > MAX_OFFSETS:
                starts = starts[::2]
                stride *= 2
    return rows, Offsets(stride, pa.array(starts, pa.int64()), size)
