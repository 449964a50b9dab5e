"""Which pages of documents are rows, and where a row's page is found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.manifest.pages import NOT_A_DOCUMENT, PageIndex, PageSelection


@pytest.mark.parametrize(
    ("text", "pages", "chosen"),
    [
        (None, 3, [1, 2, 3]),
        ("2-3", 9, [2, 3]),
        ("2-", 4, [2, 3, 4]),
        ("1-2, 4,4-5", 9, [1, 2, 4, 5]),
        ("5,1", 9, [1, 5]),
        ("1-10", 2, [1, 2]),
        ("3-", 2, []),
    ],
)
def test_a_selection_names_pages(text: str | None, pages: int, chosen: list[int]) -> None:
    assert PageSelection.parse(text).of(pages) == chosen


@pytest.mark.parametrize("text", ["", "a", "0-3", "3-2", "-2", "1-2-3", "1,,2", "1.5"])
def test_what_is_no_selection_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="page"):
        PageSelection.parse(text)


def index(*pages: int, selection: str | None = None) -> PageIndex:
    return PageIndex.of(pa.array(pages, pa.int32()), PageSelection.parse(selection))


def test_each_page_has_its_row_and_each_row_its_page() -> None:
    made = index(2, NOT_A_DOCUMENT, 0, 3)
    every = [(0, 1), (0, 2), (1, None), (2, 0), (3, 1), (3, 2), (3, 3)]
    assert made.rows == 7
    for start in range(7):
        for stop in range(start + 1, 8):
            assert made.places(start, stop) == every[start:stop]
            assert made.source(start, stop) == (every[start][0], every[stop - 1][0] + 1)


def test_a_part_knows_the_same_rows() -> None:
    part = index(2, NOT_A_DOCUMENT, 0, 3).cut(1, 3)
    assert part.places(2, 4) == [(1, None), (2, 0)]
    assert (part.first, len(part.pages), part.rows) == (1, 2, 2)


def test_a_document_without_any_chosen_page_keeps_one_row() -> None:
    assert index(1, 4, selection="3-").places(0, 3) == [(0, 0), (1, 3), (1, 4)]


def test_the_digest_follows_pages_and_selection() -> None:
    digests = {made.digest for made in (index(2, 3), index(3, 2), index(2, 3, selection="1-2"), index(2, -1))}
    assert len(digests) == 4
    assert index(2, 3).digest == index(2, 3).digest
