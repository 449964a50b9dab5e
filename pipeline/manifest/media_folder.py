"""A folder or glob of media files: each file a row, its path relative to the manifest's folder the id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import pyarrow as pa

from pipeline.manifest.listing import Listing
from pipeline.manifest.manifest import Format, Manifest, ManifestFile, MediaPaths, fingerprint_of
from pipeline.manifest.media_names import is_document, is_video
from pipeline.manifest.rows import RawRow, build_table, keep_array
from pipeline.manifest.shard import Shard


def list_media(listing: Listing) -> ManifestFile:
    """The one manifest file of a media folder; its fingerprint is that of every file in it."""
    digest = blake2b(digest_size=16)
    for name, info in zip(listing.names, listing.files, strict=True):
        digest.update(f"{name}\0{fingerprint_of(info)}\0".encode(errors="surrogateescape"))
    paths = MediaPaths(pa.array(listing.names, pa.string()))
    return ManifestFile(
        listing.base, listing.label, Format.MEDIA, len(listing.names), digest.hexdigest(), index=paths
    )


def read_media(manifest: Manifest, shard: Shard, ranges: Sequence[tuple[int, int]]) -> Iterator[pa.Table]:
    """Yield the canonical table of each range of rows of the shard; no file is opened."""
    file = manifest.files[shard.file]
    if not isinstance(shard.seek, MediaPaths):
        raise TypeError(f"shard {shard.name} is not of a media folder")
    for start, stop in ranges:
        paths = shard.seek.paths.slice(start - shard.start, stop - start).to_pylist()
        named = [(f"{file.name}/{path}" if file.name else path, path) for path in paths]
        rows = [RawRow({"id": name, _role(path): f"{file.uri}/{path}"}) for name, path in named]
        yield build_table(manifest, file, start, rows, keep_array(manifest.keep, [], len(rows)))


def _role(path: str) -> str:
    return "video" if is_video(path) else "document" if is_document(path) else "image"
