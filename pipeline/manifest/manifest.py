"""What a manifest is once it has been opened: its files, its columns, and where their rows begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from pipeline.manifest.pages import PageIndex
from pipeline.storage import FileInfo


class Format(StrEnum):
    """How the rows of a manifest file are written."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    URLS = "txt"
    """One URI a line."""
    TAR = "tar"
    """WebDataset: the members of a sample are a row."""
    MEDIA = "media"
    """No file of rows: the media files of a folder or glob, one row each."""


@dataclass(frozen=True)
class RowGroups:
    """Parquet's index: `stops[i]` is the row behind row group i (int64)."""

    stops: pa.Int64Array


@dataclass(frozen=True)
class Offsets:
    """A text file's sparse index: `starts[i]` is the byte at which row i x `stride` begins (int64)."""

    stride: int
    starts: pa.Int64Array
    size: int


@dataclass(frozen=True)
class MediaPaths:
    """Media files by their paths relative to the folder, in the order of their rows."""

    paths: pa.StringArray


@dataclass(frozen=True)
class Samples:
    """A tar's index: `starts[i]` is the byte at which sample i begins (int64), `end` where the last ends."""

    starts: pa.Int64Array
    end: int


Index = RowGroups | Offsets | Samples


@dataclass(frozen=True)
class ManifestFile:
    """One file of rows, or the one listing of a media folder.

    `name` is its path relative to the manifest's folder ("" for the listing of that folder itself),
    `fingerprint` changes when the file (or any file of the listing) does, `header` holds the columns of a
    CSV in their order. With `pages` the `rows` are those that the pages of its documents make, while
    `index` is about the file's own. `view` is `Columns.view`: another one makes other rows of it.
    """

    uri: str
    name: str
    format: Format
    rows: int
    fingerprint: str
    header: tuple[str, ...] = ()
    index: Index | MediaPaths | None = None
    pages: PageIndex | None = None
    view: str = ""

    @property
    def identity(self) -> str:
        """A text that changes when a row of the file may have become another one."""
        parts = [self.fingerprint, self.pages.digest if self.pages else "", self.view]
        return ":".join(part for part in parts if part)


ONLY_NAMED = ("document", "password", "start", "end")
"""Roles that a column of that name does not play by itself."""


@dataclass(frozen=True)
class Columns:
    """The manifest's column for each role, None where it has none."""

    id: str | None = None
    image: str | None = None
    images: str | None = None
    video: str | None = None
    document: str | None = None
    password: str | None = None
    start: str | None = None
    end: str | None = None
    question: str | None = None

    def named(self) -> dict[str, str]:
        """Role → column, of the roles that have one."""
        return {role: column for role, column in vars(self).items() if column is not None}

    def media(self) -> dict[str, str]:
        """Role → column, of the roles that carry media."""
        return {r: c for r, c in self.named().items() if r in ("image", "images", "video", "document")}

    def view(self, keep: Iterable[str]) -> str:
        """A text that changes with what a row is made of: "" where every column has its role's name and none
        is kept besides."""
        roles = [f"{r}={c}" for r, c in self.named().items() if r != c or r in ONLY_NAMED]
        return ",".join([*roles, *(f"keep={name}" for name in keep)])


@dataclass(frozen=True)
class Manifest:
    """What to process. `ignored` counts the files of its folder that are neither rows nor media."""

    uri: str
    files: tuple[ManifestFile, ...]
    columns: Columns
    keep: pa.Schema
    has_images: bool
    has_videos: bool
    ignored: int = 0
    has_documents: bool = False

    @property
    def rows(self) -> int:
        """Rows of all files together."""
        return sum(file.rows for file in self.files)

    def for_workers(self) -> Manifest:
        """The same without indexes and listings: all that `read` needs, and small enough for every task."""
        return replace(self, files=tuple(replace(file, index=None, pages=None) for file in self.files))


@dataclass(frozen=True)
class Probe:
    """What opening one manifest file found. `schema` has the columns with their types as far as known."""

    schema: pa.Schema
    rows: int
    index: Index
    header: tuple[str, ...] = ()


def fingerprint_of(info: FileInfo) -> str:
    """A text that changes when the file does: its size, and its ETag or else its modification time."""
    return f"{info.size}:{info.etag or info.mtime}"
