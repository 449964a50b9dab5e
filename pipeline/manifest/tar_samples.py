"""The samples of a WebDataset tar: neighbouring entries whose names agree up to the first dot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from pipeline.manifest.tar_entries import Entry, padded

MAX_MEMBERS = 256
MAX_SAMPLE_BYTES = 512 << 20
"""Of the members of one sample that are read; a larger one becomes a row with an error."""

_NAME = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]*)", re.DOTALL)
_META = re.compile(r"(?:^|/)__[^/]*__(?:$|/)")


@dataclass(frozen=True)
class Member:
    """One entry of a sample, with its payload if that was asked for."""

    entry: Entry
    data: bytes | None


@dataclass(frozen=True)
class Sample:
    """One row. `members` has its entries by extension in lower case (`jpg`, `seg.png`, `json`).

    Its first header is at byte `begin`, its last payload ends at byte `end`.
    """

    key: str
    begin: int
    end: int
    members: dict[str, Member]
    problem: str | None


def samples(found: Iterable[Entry], read: Callable[[str, Entry], bytes | None]) -> Iterator[Sample]:
    """Group the entries as WebDataset does: hidden ones, ones without a dot, and `__meta__` are passed by.

    `read` gives an entry's payload, or None if it is not wanted; it is asked while the tar stands there.
    """
    named = ((split, entry) for entry in found if (split := _split(entry.name)))
    for key, group in groupby(named, key=lambda pair: pair[0][0]):
        yield _sample(key, group, read)


def _sample(
    key: str, group: Iterable[tuple[tuple[str, str], Entry]], read: Callable[[str, Entry], bytes | None]
) -> Sample:
    members: dict[str, Member] = {}
    problems: list[str] = []
    begin = end = -1
    size = 0
    for number, ((_, extension), entry) in enumerate(group):
        begin = entry.begin if begin < 0 else begin
        end = entry.data + padded(entry.size)
        shown = f"the member {entry.name[:200]!r}"
        if number >= MAX_MEMBERS:
            problems += [f"the sample has more than {MAX_MEMBERS} members"] if number == MAX_MEMBERS else []
            continue
        if extension in members:
            problems.append(f"{shown} is there twice")
            continue
        data = None
        if entry.problem:
            problems.append(f"{shown} {entry.problem}")
        elif size + entry.size <= MAX_SAMPLE_BYTES:
            data = read(extension, entry)
            size += len(data or b"")
        else:
            problems.append(f"{shown} makes a sample of more than {MAX_SAMPLE_BYTES >> 20} MiB")
        members[extension] = Member(entry, data)
    return Sample(key, begin, end, members, "; ".join(problems[:3]) or None)


def _split(name: str) -> tuple[str, str] | None:
    """Key and extension of a name; None if it belongs to no sample."""
    match = _NAME.fullmatch(name)
    if match is None or _META.search(name):
        return None
    return match[1], match[2].lower()
