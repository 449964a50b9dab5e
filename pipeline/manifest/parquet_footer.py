"""What a Parquet footer says, held against the file before anything is fetched or allocated by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_ROWS = 1 << 31
"""Of one file: as many shards would be made of it."""

ROWS_IN_DOUBT = 1 << 20
MAX_ROWS_PER_BYTE = 10_000
"""More rows than ROWS_IN_DOUBT that take less than that are made up: writers begin a page every 20,000 rows or
so, and a page with its header takes 20 bytes at least."""

_MAGIC = 4
_CURE = "write the file again"


def row_counts(metadata: Any, size: int) -> list[int]:
    """The rows of each row group of a file of `size` bytes.

    Raises:
        ValueError: they do not add up, or cannot be in so few bytes; with the cure.
    """
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    total = metadata.num_rows
    if min(rows, default=0) < 0 or sum(rows) != total or total > MAX_ROWS:
        raise ValueError(
            f"its footer speaks of {total:,} rows in {len(rows)} row groups of {sum(rows):,}; "
            f"at most {MAX_ROWS:,} are read of one file: {_CURE}, as several if it is so long"
        )
    if total > max(ROWS_IN_DOUBT, MAX_ROWS_PER_BYTE * size):
        raise ValueError(f"its footer speaks of {total:,} rows, and the file has {size:,} bytes: {_CURE}")
    return rows


def check_chunks(metadata: Any, size: int) -> None:
    """Hold all column chunks against the file of `size` bytes, which takes half as long as reading the footer.

    Raises:
        ValueError: one lies outside of the file, or has less values than its row group has rows; with the cure.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        _check_group(group.num_rows, (group.column(i) for i in range(group.num_columns)), size)


def _check_group(rows: int, chunks: Iterable[Any], size: int) -> None:
    if not rows:
        return  # some writers leave the places of nothing at 0
    for chunk in chunks:
        begin, stored = _begin(chunk), chunk.total_compressed_size
        if stored < 0 or not _MAGIC <= begin <= size - stored:
            raise ValueError(
                f"its footer puts {stored:,} bytes of column {chunk.path_in_schema[:200]!r} at byte {begin:,}, "
                f"and the file has {size:,}: {_CURE}"
            )
        if chunk.total_uncompressed_size < 0 or chunk.num_values < rows:
            raise ValueError(
                f"its footer speaks of {rows:,} rows with {chunk.num_values:,} values in "
                f"{chunk.total_uncompressed_size:,} bytes of column {chunk.path_in_schema[:200]!r}: {_CURE}"
            )


def _begin(chunk: Any) -> int:
    """Where a chunk begins: its dictionary is before its data."""
    dictionary = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if not dictionary else min(dictionary, chunk.data_page_offset))
