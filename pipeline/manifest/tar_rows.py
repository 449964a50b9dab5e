"""The columns of a tar's samples: media, texts, and the fields of their JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipeline.manifest.jsonl_file import check_text, json_object
from pipeline.manifest.media_names import IMAGES, VIDEOS
from pipeline.manifest.paths import value_at
from pipeline.manifest.records import MAX_RECORD_BYTES
from pipeline.manifest.tar_entries import Entry
from pipeline.manifest.tar_samples import Member, Sample
from pipeline.manifest.text_rows import Parsed
from pipeline.manifest.window import Window

KEY, IMAGES_OF, VIDEO_OF = "__key__", "__images__", "__video__"
"""Columns of every tar: a sample's name, and its members that by their extensions are images or a video."""

JSON = "json"
TEXTS = frozenset({"txt", "text", "caption", "transcript", "cls", "cls2", "class", "count", "index", "id"})
"""Extensions of members that are text. Any other is bytes."""


def reader_of(window: Window, columns: Sequence[str]) -> Callable[[str, Entry], bytes | None]:
    """Reads the members that the columns are made of."""
    named = {*columns, *([JSON] if any(name.startswith(f"{JSON}.") for name in columns) else [])}

    def read(extension: str, entry: Entry) -> bytes | None:
        dotted = f".{extension}"
        is_media = (IMAGES_OF in named and dotted in IMAGES) or (VIDEO_OF in named and dotted in VIDEOS)
        return window.read(entry.data, entry.size) if is_media or extension in named else None

    return read


def parsed(sample: Sample, columns: Sequence[str]) -> Parsed:
    """A sample's values of the columns. What is wrong with one costs the sample, not its neighbours."""
    values: dict[str, Any] = {KEY: sample.key}
    problems = [sample.problem] if sample.problem else []
    for name in dict.fromkeys(columns):
        try:
            values[name] = _value(sample, name)
        except ValueError as error:
            problems.append(str(error))
    return Parsed(values, "; ".join(problems) or None)


def _value(sample: Sample, column: str) -> Any:
    media = {name: member for name, member in sample.members.items() if member.data is not None}
    if column == KEY:
        return sample.key
    if column == IMAGES_OF:
        return [_medium(member) for name, member in media.items() if f".{name}" in IMAGES]
    if column == VIDEO_OF:
        videos = [_medium(member) for name, member in media.items() if f".{name}" in VIDEOS]
        if len(videos) > 1:
            raise ValueError("the sample has several videos; name one in manifest.columns.video")
        return videos[0] if videos else None
    extension = JSON if column.startswith(f"{JSON}.") and column not in sample.members else column
    data = media[extension].data if extension in media else None
    if data is None or extension not in TEXTS | {JSON}:
        return data
    return _text_value(data, extension, column)


def _text_value(data: bytes, extension: str, column: str) -> Any:
    what = f"member {extension!r}"
    if len(data) > MAX_RECORD_BYTES:
        raise ValueError(f"the {what} has more than {MAX_RECORD_BYTES >> 20} MiB of text")
    if extension == JSON:
        value = value_at({JSON: json_object(data, what)}, column)
        check_text(data, {column: value}, what)
        return value
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} is no UTF-8: {error.reason} at byte {error.start + 1}") from error


def _medium(member: Member) -> dict[str, Any]:
    return {"bytes": member.data, "path": member.entry.name}
