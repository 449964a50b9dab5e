"""Several URIs as one manifest: lists of them, and braces as shells and WebDataset write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

from pipeline.errors import ConfigError
from pipeline.manifest.listing import Listing, list_files
from pipeline.manifest.manifest import Format
from pipeline.storage import Storage, scheme_of

MAX_URIS = 100_000
_THREADS = 16
_BRACES = re.compile(r"\{(?:(\d{1,12})\.\.(\d{1,12})|([^{},]*(?:,[^{},]*)+))\}")


def list_manifest(storage: Storage, uris: Sequence[str]) -> list[Listing]:
    """The files of each URI, in the order of the URIs; names are relative to the folder common to all.

    Raises:
        ConfigError: with the problems of all of them, or why they do not go together.
    """
    if not uris:
        raise ConfigError(["manifest.uri: it stands for no URI at all"])
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda uri: _listed(storage, uri), uris))
    problems = [problem for one in found if isinstance(one, list) for problem in one]
    listings = [one for one in found if isinstance(one, Listing)]
    if not problems:
        problems = _repeated(listings) + _mixed(listings)
    if problems:
        raise ConfigError(problems)
    return listings if len(listings) == 1 else _labelled(listings)


def expand_braces(uri: str) -> list[str]:
    """The URIs that `{000..123}` and `{train,test}` in one stand for, in order; without braces itself.

    Raises:
        ConfigError: they are more than MAX_URIS.
    """
    match = _BRACES.search(uri)
    if match is None:
        return [uri]
    first, last, choice = match.groups()
    if choice is None:
        numbers = range(int(first), int(last) + 1)
        if len(numbers) > MAX_URIS:
            raise _too_many(uri)
        parts = [str(number).zfill(len(first)) for number in numbers]
    else:
        parts = choice.split(",")
    expanded: list[str] = []
    for part in parts:
        expanded += expand_braces(uri[: match.start()] + part + uri[match.end() :])
        if len(expanded) > MAX_URIS:
            raise _too_many(uri)
    return expanded


def _too_many(uri: str) -> ConfigError:
    return ConfigError([f"manifest.uri: {uri} stands for more than {MAX_URIS:,} URIs; use a folder or a glob"])


def _listed(storage: Storage, uri: str) -> Listing | list[str]:
    try:
        return list_files(storage, uri)
    except ConfigError as error:
        return error.problems


def _repeated(listings: list[Listing]) -> list[str]:
    """Files that several URIs stand for: their items would be paid for twice."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for info in chain.from_iterable(listing.files for listing in listings):
        if info.uri in seen:
            twice[info.uri] = None
        seen.add(info.uri)
    more = f" (and {len(twice) - 3} more)" if len(twice) > 3 else ""
    return [f"manifest.uri: {uri} is named twice{more}" for uri in list(twice)[:3]]


def _mixed(listings: list[Listing]) -> list[str]:
    """What does not go together: media files and tars have columns of their own kind."""
    formats = {listing.format for listing in listings}
    if len(formats) > 1 and formats & {Format.MEDIA, Format.TAR}:
        shown = ", ".join(sorted(formats))
        return [f"manifest.uri: {shown} do not go together in one manifest; make a run of each"]
    return []


def _labelled(listings: list[Listing]) -> list[Listing]:
    folder = _common([listing.base for listing in listings])
    labels = [listing.base.removeprefix(folder).lstrip("/") for listing in listings]
    return [
        replace(listing, label=label, names=[f"{label}/{name}" if label else name for name in listing.names])
        if listing.format is not Format.MEDIA
        else replace(listing, label=label)
        for listing, label in zip(listings, labels, strict=True)
    ]


def _common(bases: list[str]) -> str:
    """The folder that is above all; empty where there is none, as between two buckets."""
    common: list[str] = []
    for parts in zip(*(base.split("/") for base in bases), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    shortest = 3 if scheme_of(bases[0]) != "file" else 1
    return "/".join(common) if len(common) >= shortest else ""
