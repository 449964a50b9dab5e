"""The media of a manifest row, each fetched once for a batch, however many of its rows show a page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.errors import Code, ItemError
from pipeline.identity import identified, media_uuid, object_uuid, password_key
from pipeline.models.spec import Kind
from pipeline.page_uri import page_of, with_page
from pipeline.segment import Segment
from pipeline.storage import Fetched, Storage


@dataclass(frozen=True)
class Reference:
    """One medium of an item: `data`, or where to fetch it; of a document, which page.

    `password` opens the document, and is shown nowhere. `segment` is the part of a video, where that is another
    one than the run's.
    """

    kind: Kind
    uri: str
    data: bytes | None
    page: int | None = None
    password: str | None = field(default=None, repr=False)
    segment: Segment | None = None

    def identity(self, version: str | None) -> str | None:
        """The identity of the medium in this version of its file; None where the store tells no version."""
        if version is None:
            return None
        uri = self.uri if self.page is None else with_page(self.uri, self.page)
        if self.page is not None and self.password:
            uri = f"{uri}&key={password_key(self.password, uri)}"
        return object_uuid(uri, version, self.segment)


def references_of(row: Mapping[str, Any]) -> list[Reference]:
    """The media of a canonical manifest row, images first."""
    found = []
    for one in row["images"] or ():
        uri, page = page_of(one["uri"] or "")
        found.append(Reference("image", uri, one["data"], page, row.get("password")))
    return found + [Reference("video", one["uri"], one["data"]) for one in row["videos"] or ()]


def cut(references: Sequence[Reference], row: Mapping[str, Any], run: Segment) -> list[Reference]:
    """The media with the part of their videos that the row asks for; `run` is what it is without that.

    Raises:
        ItemError: MANIFEST_ROW, the part would end before it starts.
    """
    try:
        segment = run.own(row.get("start"), row.get("end"))
    except ValueError as error:
        raise ItemError(Code.MANIFEST_ROW, str(error)) from error
    return [replace(one, segment=segment) if one.kind == "video" else one for one in references]


class Sources:
    """The files behind the media of one batch: each is asked for its version once, and fetched once."""

    def __init__(self, storage: Storage, pool: ThreadPoolExecutor, max_bytes: int) -> None:
        self._storage = storage
        self._pool = pool
        self._max_bytes = max_bytes
        self._versions: dict[str, Future[str | None]] = {}
        self._fetches: dict[str, Future[Fetched]] = {}
        self._uuids: dict[str, str] = {}

    def version(self, reference: Reference) -> Future[str | None]:
        """What the store says of the version of a medium's file; None where it tells none."""
        if reference.uri not in self._versions:
            self._versions[reference.uri] = self._pool.submit(self._ask_version, reference.uri)
        return self._versions[reference.uri]

    def fetch(self, reference: Reference) -> Future[Fetched]:
        """The bytes of a medium's file, and its version; the future raises ItemError if they cannot be had."""
        if reference.data is not None:
            return self._pool.submit(self._inline, reference.data)
        if reference.uri not in self._fetches:
            self._fetches[reference.uri] = self._pool.submit(
                self._storage.fetch, reference.uri, self._max_bytes
            )
        return self._fetches[reference.uri]

    def media_uuid(self, reference: Reference, data: bytes) -> str:
        """The UUID of a medium; the bytes of its file are gone through once, however many pages they have."""
        if reference.data is not None:
            file = media_uuid(data)
        else:
            if reference.uri not in self._uuids:
                self._uuids[reference.uri] = media_uuid(data)
            file = self._uuids[reference.uri]
        return identified(file, reference.page, reference.password, reference.segment)

    def _ask_version(self, uri: str) -> str | None:
        try:
            return self._storage.version(uri)
        except ItemError:
            return None  # told again, and coded, when the file is fetched

    def _inline(self, data: bytes) -> Fetched:
        if not data:
            raise ItemError(Code.EMPTY_FILE, "the row's media has no bytes")
        if len(data) > self._max_bytes:
            raise ItemError(Code.TOO_LARGE, f"the row's media has more than {self._max_bytes:,} bytes")
        return Fetched(data, None)
