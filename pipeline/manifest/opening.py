"""Open a manifest: find its files, look into each, and refuse what cannot be read, all at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from pipeline.config import ManifestConfig
from pipeline.errors import ConfigError
from pipeline.manifest.columns import (
    check_keep,
    check_types,
    choose_columns,
    is_there,
    missing,
    settle_keep,
    unify_keep,
)
from pipeline.manifest.csv_file import DELIMITERS, probe_csv
from pipeline.manifest.jsonl_file import probe_jsonl
from pipeline.manifest.listing import Listing
from pipeline.manifest.manifest import Columns, Format, Manifest, ManifestFile, Probe, fingerprint_of
from pipeline.manifest.media_folder import list_media
from pipeline.manifest.media_names import is_document, is_video
from pipeline.manifest.parquet_file import probe_parquet
from pipeline.manifest.paths import type_at
from pipeline.manifest.several import expand_braces, list_manifest
from pipeline.manifest.tar_file import probe_tar
from pipeline.manifest.tar_rows import IMAGES_OF, JSON, KEY, VIDEO_OF
from pipeline.manifest.url_list import probe_urls
from pipeline.storage import FileInfo, Storage

MAX_COLUMNS = 10_000
_THREADS = 16


@dataclass(frozen=True)
class _File:
    info: FileInfo
    name: str
    format: Format


def open_manifest(storage: Storage, config: ManifestConfig, reserved: Collection[str] = ()) -> Manifest:
    """Find the manifest's rows and columns: of Parquet by footers, of tars by headers, of text by reading it.

    `reserved` are the names of the result columns, which no column passed through may have.

    Raises:
        ConfigError: with every problem found, each with its cure.
    """
    listings = list_manifest(storage, list(chain.from_iterable(map(expand_braces, config.uris))))
    if listings[0].format is Format.MEDIA:
        return _open_media(listings, config)
    files = [
        _File(info, name, listing.format)
        for listing in listings
        for info, name in zip(listing.files, listing.names, strict=True)
    ]
    probes, problems = _probe_all(storage, files, config)
    schemas = {name: probe.schema for name, probe in probes.items() if probe.rows}
    if not schemas:
        raise ConfigError(problems or [f"manifest.uri: {', '.join(config.uris)} has no rows"])
    every = list(schemas.values())
    columns, wrong = choose_columns(config.columns, every, _customary(listings))
    problems += wrong + check_keep(config, every, reserved)
    kept = [column for column in config.keep if is_there(column, every)]
    used = dict.fromkeys([*columns.named().values(), *kept])
    for file in files:
        if file.name in schemas:
            problems += _check_file(file.format, file.name, schemas[file.name], columns, used)
    if problems:
        raise ConfigError(problems)
    if listings[0].format is Format.TAR:
        keep = settle_keep(config.keep, schemas)
    else:
        keep, problems = unify_keep(config.keep, schemas)
    if problems:
        raise ConfigError(problems)
    view = columns.view(config.keep)
    return Manifest(
        ", ".join(config.uris),
        tuple(_opened(file, found, view) for file, found in zip(files, probes.values(), strict=True)),
        columns,
        keep,
        has_images=any(role in columns.media() for role in ("image", "images", "document")),
        has_videos=columns.video is not None,
        ignored=sum(listing.ignored for listing in listings),
        has_documents=columns.document is not None,
    )


def _customary(listings: Sequence[Listing]) -> dict[str, tuple[str, ...]]:
    """What columns are called where none has a role's name, in the order in which they are taken."""
    if listings[0].format is Format.TAR:
        return {"id": (KEY,), "images": (IMAGES_OF,), "video": (VIDEO_OF,)}
    beside = list(chain.from_iterable(listing.media for listing in listings))
    if beside and all(map(is_video, beside)):
        return {"video": ("file_name",)}
    return {"image": ("image_url", "url", "file_name")}


def _opened(file: _File, found: Probe, view: str) -> ManifestFile:
    return ManifestFile(
        file.info.uri,
        file.name,
        file.format,
        found.rows,
        fingerprint_of(file.info),
        found.header,
        found.index,
        view=view,
    )


def _open_media(listings: Sequence[Listing], config: ManifestConfig) -> Manifest:
    named = [f"manifest.columns.{role}" for role, column in config.columns if column is not None]
    if config.keep:
        named.append("manifest.keep")
    if named:
        cure = "remove it, or list the files in a JSONL, CSV or Parquet manifest"
        raise ConfigError(
            [f"{field}: {', '.join(config.uris)} are media files, without columns; {cure}" for field in named]
        )
    names = list(chain.from_iterable(listing.names for listing in listings))
    videos = sum(map(is_video, names))
    return Manifest(
        ", ".join(config.uris),
        tuple(map(list_media, listings)),
        Columns(),
        pa.schema([]),
        has_images=videos < len(names),
        has_videos=videos > 0,
        ignored=sum(listing.ignored for listing in listings),
        has_documents=any(map(is_document, names)),
    )


def _probe_all(
    storage: Storage, files: Sequence[_File], config: ManifestConfig
) -> tuple[dict[str, Probe], list[str]]:
    """Look into every file: name → what was found, in order; and why some cannot be read."""
    wanted = [*config.keep, *(column for _, column in config.columns if column)]
    wants_json = any(name.partition(".")[0] == JSON for name in wanted)
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        found = list(pool.map(lambda file: _probe(storage, file, wants_json), files))
    problems = [problem for problem in found if isinstance(problem, str)]
    return {f.name: p for f, p in zip(files, found, strict=True) if isinstance(p, Probe)}, problems


def _probe(storage: Storage, file: _File, wants_json: bool) -> Probe | str:
    info, form = file.info, file.format
    where = f"manifest.uri: {info.uri} cannot be read as {form.value}"
    try:
        match form:
            case Format.PARQUET:
                found = probe_parquet(storage, info)
            case Format.JSONL:
                found = probe_jsonl(storage, info)
            case Format.TAR:
                found = probe_tar(storage, info, wants_json)
            case Format.URLS:
                found = probe_urls(storage, info)
            case _:
                found = probe_csv(storage, info, DELIMITERS[form])
    except (OSError, EOFError, ValueError, pa.ArrowException, MemoryError) as error:
        return f"{where}: {error or type(error).__name__}"
    if len(found.schema) > MAX_COLUMNS:
        return f"{where}: it has {len(found.schema):,} columns, more than {MAX_COLUMNS:,}"
    return found


def _check_file(
    form: Format, name: str, schema: pa.Schema, columns: Columns, used: Collection[str]
) -> list[str]:
    """Whether one file has the columns that the manifest uses, each once and of a type that suits."""
    tops = dict.fromkeys(column if column in schema.names else column.partition(".")[0] for column in used)
    twice = [column for column in tops if schema.names.count(column) > 1]
    if twice:
        return [f"manifest.uri: {name} has the column {column!r} more than once" for column in twice]
    if form in (Format.JSONL, Format.TAR, Format.URLS):
        # An object or a sample may leave out what it has not: only a file without any media is a mistake.
        media = list(columns.media().values())
        if media and not any(type_at(schema, column) is not None for column in media):
            return [missing(f"manifest.uri: {name}", media[0], schema.names)]
        return []
    lacking = [column for column in used if type_at(schema, column) is None]
    if lacking:
        return [missing(f"manifest.uri: {name}, unlike other files,", c, schema.names) for c in lacking]
    return check_types(columns, schema, name) if form is Format.PARQUET else []
