"""The page of a document as a fragment of its URI: `scan.pdf#page=3`."""

from __future__ import annotations

import re

_PAGE = re.compile(r"#page=(\d{1,9})$")


def page_of(uri: str) -> tuple[str, int | None]:
    """The URI of the file, and the page (from 1) that the URI names; None if it names none."""
    found = _PAGE.search(uri)
    return (uri[: found.start()], int(found[1])) if found else (uri, None)


def with_page(uri: str, page: int) -> str:
    """The URI of a page. Page 0 is a document of which no page has been chosen."""
    return f"{uri}#page={page}"
