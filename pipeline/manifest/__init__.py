"""Manifests: what to process, opened, cut into shards, and read as canonical rows."""

from pipeline.manifest.manifest import Columns, Format, Manifest, ManifestFile
from pipeline.manifest.opening import open_manifest
from pipeline.manifest.reading import read
from pipeline.manifest.rows import MEDIA_TYPE, row_schema
from pipeline.manifest.several import expand_braces
from pipeline.manifest.shard import Shard, shards

__all__ = [
    "MEDIA_TYPE",
    "Columns",
    "Format",
    "Manifest",
    "ManifestFile",
    "Shard",
    "expand_braces",
    "open_manifest",
    "read",
    "row_schema",
    "shards",
]
