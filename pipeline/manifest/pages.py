"""Documents of a manifest as one row for each page: how many pages each has, and which rows they make."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate

import pyarrow as pa

NOT_A_DOCUMENT = -1
"""In place of a number of pages: the row is taken as it is."""

_RANGE = re.compile(r"(\d{1,9})(-(\d{1,9})?)?")


@dataclass(frozen=True)
class PageSelection:
    """Which pages of a document are rows: ranges from 1, both ends included, None for "to the last"."""

    ranges: tuple[tuple[int, int | None], ...] = ((1, None),)

    @classmethod
    def parse(cls, text: str | None) -> PageSelection:
        """The selection that a text such as `1-10,15,20-` names; None: all pages.

        Raises:
            ValueError: it is no such text, with the reason.
        """
        if text is None:
            return cls()
        found: list[tuple[int, int | None]] = []
        for part in text.split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None:
                raise ValueError(f"{part.strip()!r} is no page or range of pages: write 1-10,15,20-")
            first = int(match[1])
            last = first if not match[2] else int(match[3]) if match[3] else None
            if first < 1 or (last is not None and last < first):
                raise ValueError(f"{part.strip()!r}: pages count from 1, upwards")
            found.append((first, last))
        return cls(tuple(found))

    def of(self, pages: int) -> list[int]:
        """The chosen pages of a document of so many, ascending, each once."""
        ranges = [range(first, min(pages, last or pages) + 1) for first, last in self.ranges]
        return sorted({page for pages_of in ranges for page in pages_of})


@dataclass(frozen=True)
class PageIndex:
    """The pages of the source rows `first`, `first` + 1, … of a manifest file, and the rows that they make.

    Attributes:
        pages: for each source row the pages of its document; 0 where they could not be counted or are too
            many, NOT_A_DOCUMENT where there is none (int32).
        starts: the row at which each source row's pages begin, and the row behind the last (int64).
    """

    first: int
    pages: pa.Int32Array
    starts: pa.Int64Array
    selection: PageSelection

    @classmethod
    def of(cls, pages: pa.Int32Array, selection: PageSelection) -> PageIndex:
        """The index of a whole file. A document of which no page is chosen makes one row, that says so."""
        made = {count: max(1, len(selection.of(max(0, count)))) for count in pages.unique().to_pylist()}
        starts = accumulate((made[count] for count in pages.to_pylist()), initial=0)
        return cls(0, pages, pa.array(starts, pa.int64()), selection)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.starts[-1].as_py()) - int(self.starts[0].as_py())

    @property
    def digest(self) -> str:
        """A text that changes when a page comes or goes."""
        rows = repr(self.selection.ranges).encode() + self.pages.cast(pa.int32()).to_numpy().tobytes()
        return blake2b(rows, digest_size=8).hexdigest()

    def source(self, start: int, stop: int) -> tuple[int, int]:
        """The source rows [from, to) that make the rows [start, stop)."""
        return self._source_of(start), self._source_of(stop - 1) + 1

    def cut(self, start: int, stop: int) -> PageIndex:
        """The part for these source rows, copied: a slice would be pickled together with the whole."""
        begin = start - self.first
        return PageIndex(
            start,
            pa.concat_arrays([self.pages.slice(begin, stop - start)]),
            pa.concat_arrays([self.starts.slice(begin, stop - start + 1)]),
            self.selection,
        )

    def places(self, start: int, stop: int) -> list[tuple[int, int | None]]:
        """(source row, page) of each of the rows [start, stop); page 0: none; None: no document."""
        found: list[tuple[int, int | None]] = []
        row = start
        while row < stop:
            source = self._source_of(row)
            count = self.pages[source - self.first].as_py()
            begin = self.starts[source - self.first].as_py()
            pages: list[int | None] = [None] if count == NOT_A_DOCUMENT else [*self.selection.of(count)] or [0]
            part = pages[row - begin : stop - begin]
            found += [(source, page) for page in part]
            row += len(part)
        return found

    def _source_of(self, row: int) -> int:
        return self.first + bisect_right(self.starts, row, key=lambda start: start.as_py()) - 1
