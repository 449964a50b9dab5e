"""The names of the files in a recipe's folder, relative to it. What matches none of them is not a result."""

from __future__ import annotations

import re

BATCHES = ".batches"
AGAIN = ".retries"
RETIRED = ".retired"

SHARD = re.compile(r"([^./_][^/]*)\.parquet")
"""A finished shard, by its name."""

BATCH = re.compile(r"\.batches/([^/]+)/(\d+)-(\d+)\.parquet")
"""A batch of a shard: the shard's name, first row and the row behind the last."""

DONE_AGAIN = re.compile(r"\.retries/([^/]+)/(\d+)-(\d+)\.parquet")
"""Rows of a batch that were done again, named likewise."""

PUT_ASIDE = re.compile(r"\.retired/[^./][^/]*\.parquet")
"""Results of a manifest file that is no more."""


def name_in(folder: str, uri: str) -> str:
    """A file's name in the folder."""
    return uri.removeprefix(folder).lstrip("/")
