"""Canonical rows: one Arrow schema for the items of a manifest, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.manifest.manifest import Manifest, ManifestFile
from pipeline.manifest.media_value import MediaValue, many_media, one_medium
from pipeline.page_uri import page_of, with_page
from pipeline.segment import seconds
from pipeline.storage import parent

MEDIA_TYPE = pa.list_(pa.struct([("uri", pa.string()), ("data", pa.large_binary())]))
"""The media of an item: each has `data`, or the absolute `uri` to fetch it from (else a mere label)."""

MAX_DOCUMENT_BYTES = 16 << 20
"""Of a document whose bytes are in the manifest: they travel with each of its pages."""


@dataclass(frozen=True)
class RawRow:
    """A row's values by role, as its format gives them, and what is already known to be wrong with it."""

    values: Mapping[str, Any]
    error: str | None = None


@dataclass(frozen=True)
class _Row:
    id: str | None
    images: list[MediaValue]
    videos: list[MediaValue]
    question: str | None
    password: str | None
    start: float | None
    end: float | None
    error: str | None


def row_schema(manifest: Manifest) -> pa.Schema:
    """The schema of every table that `read` yields.

    `row` (in its manifest file), `id`, `images` and `videos` (MEDIA_TYPE, empty where the row has none),
    `question`, `keep` (a struct of the columns passed through), `error` (null, or what is wrong with the
    row, for people). `password` (of its documents), `start` and `end` (seconds of its video) only where the
    manifest has such a column. A document is the first image, with its page as a fragment of its URI
    (`page_uri`).
    """
    return pa.schema(
        [
            pa.field("row", pa.int64(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("images", MEDIA_TYPE, nullable=False),
            pa.field("videos", MEDIA_TYPE, nullable=False),
            pa.field("question", pa.string()),
            pa.field("keep", pa.struct(list(manifest.keep)), nullable=False),
            pa.field("error", pa.string()),
            *_extra(manifest),
        ]
    )


def _extra(manifest: Manifest) -> list[pa.Field]:
    """The fields that only some manifests have: their roles' own names."""
    types = {"password": pa.string(), "start": pa.float64(), "end": pa.float64()}
    return [pa.field(role, types[role]) for role in types if role in manifest.columns.named()]


def keep_array(keep: pa.Schema, arrays: Sequence[pa.Array], rows: int) -> pa.StructArray:
    """The `keep` column of so many rows, from one array for each field."""
    if not arrays:
        return pa.array([{}] * rows, pa.struct([]))
    return pa.StructArray.from_arrays(arrays, fields=list(keep))


def build_table(
    manifest: Manifest, file: ManifestFile, start: int, raw: Sequence[RawRow], keep: pa.StructArray
) -> pa.Table:
    """The canonical table of the rows `start`, `start` + 1, … of a file."""
    folder = parent(file.uri)
    rows = [_clean(row, folder, manifest) for row in raw]
    numbers = range(start, start + len(rows))
    columns = [
        pa.array(numbers, pa.int64()),
        pa.array([row.id or f"{file.name}#{n}" for row, n in zip(rows, numbers, strict=True)], pa.string()),
        pa.array([list(map(vars, row.images)) for row in rows], MEDIA_TYPE),
        pa.array([list(map(vars, row.videos)) for row in rows], MEDIA_TYPE),
        pa.array([row.question for row in rows], pa.string()),
        keep,
        pa.array([row.error for row in rows], pa.string()),
    ]
    columns += [pa.array([getattr(row, field.name) for row in rows], field.type) for field in _extra(manifest)]
    return pa.Table.from_arrays(columns, schema=row_schema(manifest))


def _clean(raw: RawRow, folder: str, manifest: Manifest) -> _Row:
    troubles = [raw.error] if raw.error else []

    def take(role: str, convert: Any, otherwise: Any) -> Any:
        try:
            return convert(raw.values.get(role))
        except ValueError as error:
            column = manifest.columns.named().get(role, role)
            troubles.append(f"column {column!r} {error}")
            return otherwise

    identity = take("id", _id, None)
    question = take("question", _question, None)
    image = take("image", lambda value: one_medium(value, folder), None)
    images = take("images", lambda value: many_media(value, folder), [])
    video = take("video", lambda value: one_medium(value, folder), None)
    document = take("document", lambda value: _document(value, folder), None)
    images = [*([document] if document else []), *([image] if image else []), *images]
    videos = [video] if video else []
    password = take("password", _password, None)
    start, end = take("start", seconds, None), take("end", seconds, None)
    if not (videos or troubles) and (start, end) != (None, None):
        role = "end" if start is None else "start"
        column = manifest.columns.named().get(role, role)
        troubles.append(f"column {column!r} says which part of a video is meant, and the row has no video")
    error = "; ".join(troubles) or None
    return _Row(identity, images, videos, question, password, start, end, error)


def _document(value: object, folder: str) -> MediaValue | None:
    document = one_medium(value, folder)
    if document is None or page_of(document.uri or "")[1] is not None:
        return document
    if document.data is not None and len(document.data) > MAX_DOCUMENT_BYTES:
        most = f"{MAX_DOCUMENT_BYTES >> 20} MiB"
        raise ValueError(f"has a document of {len(document.data):,} bytes; above {most} give its URI instead")
    return MediaValue(with_page(document.uri or "", 0), document.data)


def _password(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("has a password that is not text")


def _id(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"has an id that is neither text nor a whole number: {str(value)[:80]}")


def _question(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value if value and value.strip() else None
    raise ValueError(f"has a question that is not text: {str(value)[:80]}")
