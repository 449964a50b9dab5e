"""Open a manifest: find its files, look into each, and refuse what cannot be read, all at once."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from pipeline.config import ManifestConfig
from pipeline.errors import ConfigError
from pipeline.manifest.columns import check_keep, check_types, choose_columns, missing, unify_keep
from pipeline.manifest.csv_file import DELIMITERS, probe_csv
from pipeline.manifest.jsonl_file import probe_jsonl
from pipeline.manifest.listing import Listing, is_document, is_video, list_files
from pipeline.manifest.manifest import Columns, Format, Manifest, ManifestFile, Probe, fingerprint_of
from pipeline.manifest.media_folder import list_media
from pipeline.manifest.parquet_file import probe_parquet
from pipeline.storage import FileInfo, Storage

_THREADS = 8


def open_manifest(storage: Storage, config: ManifestConfig, reserved: Collection[str] = ()) -> Manifest:
    """Find the manifest's rows and columns: Parquet by its footers, text by reading it once in blocks.

    `reserved` are the names of the result columns, which no column passed through may have.

    Raises:
        ConfigError: with every problem found, each with its cure.
    """
    listing = list_files(storage, config.uri)
    if listing.format is Format.MEDIA:
        return _open_media(listing, config)
    probes, problems = _probe_all(storage, listing)
    schemas = {name: probe.schema for name, probe in probes.items() if probe.rows}
    if not schemas:
        raise ConfigError(problems or [f"manifest.uri: {config.uri} has no rows"])
    there = list(dict.fromkeys(name for schema in schemas.values() for name in schema.names))
    columns, wrong = choose_columns(config.columns, there)
    problems += wrong + check_keep(config, there, reserved)
    used = dict.fromkeys([*columns.named().values(), *(column for column in config.keep if column in there)])
    for name, schema in schemas.items():
        problems += _check_file(listing.format, name, schema, columns, used)
    if problems:
        raise ConfigError(problems)
    keep, problems = unify_keep(config.keep, schemas)
    if problems:
        raise ConfigError(problems)
    files = tuple(
        ManifestFile(
            info.uri, name, listing.format, found.rows, fingerprint_of(info), found.header, found.index
        )
        for name, info, found in zip(listing.names, listing.files, probes.values(), strict=True)
    )
    return Manifest(
        config.uri,
        files,
        columns,
        keep,
        has_images=any(role in columns.media() for role in ("image", "images", "document")),
        has_videos=columns.video is not None,
        ignored=listing.ignored,
        has_documents=columns.document is not None,
    )


def _open_media(listing: Listing, config: ManifestConfig) -> Manifest:
    named = [f"manifest.columns.{role}" for role, column in config.columns if column is not None]
    if config.keep:
        named.append("manifest.keep")
    if named:
        cure = "remove it, or list the files in a JSONL, CSV or Parquet manifest"
        raise ConfigError(
            [f"{field}: {config.uri} are media files, without columns; {cure}" for field in named]
        )
    videos = sum(map(is_video, listing.names))
    return Manifest(
        config.uri,
        (list_media(listing),),
        Columns(),
        pa.schema([]),
        has_images=videos < len(listing.names),
        has_videos=videos > 0,
        ignored=listing.ignored,
        has_documents=any(map(is_document, listing.names)),
    )


def _probe_all(storage: Storage, listing: Listing) -> tuple[dict[str, Probe], list[str]]:
    """Look into every file: name → what was found, in order; and why some cannot be read."""
    with ThreadPoolExecutor(min(_THREADS, len(listing.files))) as pool:
        found = list(pool.map(lambda info: _probe(storage, info, listing.format), listing.files))
    problems = [problem for problem in found if isinstance(problem, str)]
    return {n: p for n, p in zip(listing.names, found, strict=True) if isinstance(p, Probe)}, problems


def _probe(storage: Storage, info: FileInfo, form: Format) -> Probe | str:
    try:
        if form is Format.PARQUET:
            return probe_parquet(storage, info)
        if form is Format.JSONL:
            return probe_jsonl(storage, info)
        return probe_csv(storage, info, DELIMITERS[form])
    except (OSError, EOFError, ValueError) as error:
        return f"manifest.uri: {info.uri} cannot be read as {form.value}: {error}"


def _check_file(
    form: Format, name: str, schema: pa.Schema, columns: Columns, used: Collection[str]
) -> list[str]:
    """Whether one file has the columns that the manifest uses, each once and of a type that suits."""
    twice = [column for column in used if schema.names.count(column) > 1]
    if twice:
        return [f"manifest.uri: {name} has the column {column!r} more than once" for column in twice]
    if form is Format.JSONL:
        # A JSON object may leave out what it has not, so only a file without any media is a mistake.
        media = list(columns.media().values())
        if media and not any(column in schema.names for column in media):
            return [missing(f"manifest.uri: {name}", media[0], schema.names)]
        return []
    lacking = [column for column in used if column not in schema.names]
    if lacking:
        return [missing(f"manifest.uri: {name}, unlike other files,", c, schema.names) for c in lacking]
    return check_types(columns, schema, name) if form is Format.PARQUET else []
