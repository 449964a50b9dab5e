"""Read the rows of a shard, as canonical tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipeline.errors import ConfigError
from pipeline.manifest.csv_file import read_csv
from pipeline.manifest.jsonl_file import read_jsonl
from pipeline.manifest.manifest import Format, Manifest, ManifestFile, fingerprint_of
from pipeline.manifest.media_folder import read_media
from pipeline.manifest.page_rows import read_pages
from pipeline.manifest.parquet_file import read_parquet
from pipeline.manifest.shard import Shard
from pipeline.manifest.tar_file import read_tar
from pipeline.manifest.url_list import read_urls
from pipeline.storage import Storage


def read(
    storage: Storage, manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]
) -> Iterator[pa.Table]:
    """Yield one table (`row_schema(manifest)`) for each range [start, stop) of rows, in one pass.

    The ranges are row numbers of the manifest file: not empty, ascending, disjoint, inside of the shard. A
    malformed row is a row with an `error`. `manifest` may be the one for workers.

    Raises:
        ConfigError: the manifest file is not the one that was opened.
        ValueError: the ranges are not as said.
    """
    _check(shard, ranges)
    if not ranges:
        return
    if shard.pages is not None:
        start, stop = shard.pages.first, shard.pages.first + len(shard.pages.pages)
        source = replace(shard, start=start, stop=stop, pages=None)
        yield from read_pages(shard.pages, ranges, partial(read, storage, manifest, source))
        return
    file = manifest.files[shard.file]
    if file.format is Format.MEDIA:
        yield from read_media(manifest, shard, ranges)
        return
    _check_unchanged(storage, file)
    if file.format is Format.PARQUET:
        yield from read_parquet(storage, manifest, shard, ranges)
    elif file.format is Format.JSONL:
        yield from read_jsonl(storage, manifest, shard, ranges)
    elif file.format is Format.TAR:
        yield from read_tar(storage, manifest, shard, ranges)
    elif file.format is Format.URLS:
        yield from read_urls(storage, manifest, shard, ranges)
    else:
        yield from read_csv(storage, manifest, shard, ranges)


def _check(shard: Shard, ranges: Sequence[tuple[int, int]]) -> None:
    row = shard.start
    for start, stop in ranges:
        if not row <= start < stop <= shard.stop:
            raise ValueError(f"range [{start}, {stop}) of {shard.name}: empty, out of order or outside")
        row = stop


def _check_unchanged(storage: Storage, file: ManifestFile) -> None:
    if fingerprint_of(storage.info(file.uri)) != file.fingerprint:
        raise ConfigError([f"manifest.uri: {file.uri} has changed since the run began; start it again"])
