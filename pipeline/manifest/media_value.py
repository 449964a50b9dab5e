"""What a media column may hold, made one shape: {uri, data}."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pipeline.storage import join


@dataclass(frozen=True)
class MediaValue:
    """One medium of an item: its bytes, or the absolute URI to fetch them from.

    With `data` the `uri` is only a label, as the manifest has it.
    """

    uri: str | None
    data: bytes | None


def one_medium(value: object, folder: str) -> MediaValue | None:
    """The medium of a value: a URI, bytes, or Hugging Face's {bytes, path}; None if it is null or blank.

    A URI that is relative is one below `folder`.

    Raises:
        ValueError: the value is something else.
    """
    match value:
        case None:
            return None
        case str():
            return MediaValue(join(folder, value), None) if value.strip() else None
        case bytes():
            return MediaValue(None, value)
        case {"bytes": bytes() as data, **others}:
            path = others.get("path")
            return MediaValue(path if isinstance(path, str) else None, data)
        case {"bytes": str()}:
            raise ValueError("has its `bytes` as text; bytes can only come in Parquet")
        case {"path": str() | None as path}:
            return one_medium(path, folder)
        case {"bytes": None}:
            return None
        case list():
            raise ValueError("is a list where one medium belongs; several images belong in the role `images`")
        case _:
            raise ValueError(f"is {_kind(value)} where a URI, bytes or {{bytes, path}} belongs")


def many_media(value: object, folder: str) -> list[MediaValue]:
    """The media of a list of such values, or of one of them; nulls in it are left out.

    A text that is a JSON list is one too: that is how a CSV gives several images.

    Raises:
        ValueError: a value is something else.
    """
    if isinstance(value, str) and value.startswith("["):
        value = _json_list(value)
    values = value if isinstance(value, list) else [value]
    return [medium for medium in (one_medium(part, folder) for part in values) if medium is not None]


def _json_list(text: str) -> object:
    """The list that a text beginning as one is; the text if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, sorted(map(str, value)))) or 'nothing in it'}"
    return f"{type(value).__name__} {str(value)[:40]}"
