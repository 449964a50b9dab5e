"""Rows of documents made rows of pages, while a shard is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.manifest.pages import PageIndex
from pipeline.manifest.rows import MEDIA_TYPE
from pipeline.page_uri import page_of, with_page

Ranges = Sequence[tuple[int, int]]


def read_pages(
    index: PageIndex, ranges: Ranges, read: Callable[[Ranges], Iterator[pa.Table]]
) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows, a row for each page.

    Args:
        index: of the shard's source rows.
        ranges: of rows, ascending and disjoint.
        read: yields the canonical table of each range of source rows; a source row is read once, though its
            pages may be in several ranges.
    """
    sources = [index.source(start, stop) for start, stop in ranges]
    tables = read(list(_disjoint(sources)))
    last: pa.Table | None = None
    covered = 0
    for (start, stop), (first, behind) in zip(ranges, sources, strict=True):
        parts = [] if last is None or first >= covered else [last.slice(last.num_rows - 1)]
        if behind > covered:
            parts.append(next(tables))
            covered = behind
        last = pa.concat_tables(parts)
        yield _expanded(last, index.places(start, stop), first, start)


def _disjoint(sources: Ranges) -> Iterator[tuple[int, int]]:
    covered = 0
    for first, behind in sources:
        if behind > covered:
            yield max(first, covered), behind
            covered = behind


def _expanded(table: pa.Table, places: list[tuple[int, int | None]], first: int, start: int) -> pa.Table:
    made = table.take(pa.array([source - first for source, _ in places], pa.int64()))
    pages = [page for _, page in places]
    rows = pa.array(range(start, start + len(places)), pa.int64())
    ids = [
        f"{name}#page={page}" if page else name
        for name, page in zip(made["id"].to_pylist(), pages, strict=True)
    ]
    columns = {"row": rows, "id": pa.array(ids, pa.string()), "images": _images(made["images"], pages)}
    return pa.table([columns.get(field.name, made[field.name]) for field in made.schema], schema=made.schema)


def _images(images: pa.ChunkedArray, pages: list[int | None]) -> pa.Array:
    """The images with the page in the URI of the first one, which is the document; no bytes are copied."""
    lists = images.combine_chunks()
    lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
    flat = lists.flatten()
    uris = flat.field("uri").to_pylist()
    at = 0
    for page, count in zip(pages, pc.list_value_length(lists).to_pylist(), strict=True):
        if page is not None and count:
            uris[at] = with_page(page_of(uris[at])[0], page)
        at += count
    made = pa.StructArray.from_arrays(
        [pa.array(uris, pa.string()), flat.field("data")], fields=list(MEDIA_TYPE.value_type)
    )
    offsets = [0]
    for count in pc.list_value_length(lists).to_pylist():
        offsets.append(offsets[-1] + count)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), made)
