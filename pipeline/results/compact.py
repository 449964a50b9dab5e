"""A finished recipe's many shard files copied into few large ones, beside them, so that no reader is disturbed.

A plain folder of Parquet has no list of what belongs together: merging in place would show rows twice, or not
at all, to whoever reads meanwhile. So each compaction is a *generation*: a folder of its own under
`OUTPUT/_compact/recipe=<id>/`, which counts once its `_complete.json` is there, written last, and never
changes after that until it is swept. The shards stay what runs and retries work on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import ConfigError
from pipeline.manifest.source import open_exact
from pipeline.results.part_writer import PartWriter
from pipeline.results.recipe_files import RecipeFiles
from pipeline.results.records import expected_rows
from pipeline.storage import FileInfo, Storage, join, redact, scheme_of

COMPLETE_FILE = "_complete.json"
ROWS_AT_ONCE = 8192
THREADS = 16
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_PART = re.compile(r"(.*/\d{8}T\d{6}\.\d{6}Z)/[^/]+")
_VERSIONS = b"framescribe.versions"
_ALL_VERSIONS = b"framescribe.all_versions"


@dataclass(frozen=True)
class Generation:
    """A complete compaction. `rows` are result rows; `is_new` is False if it was there already, made of the
    same files."""

    folder: str
    parts: int
    rows: int
    is_new: bool


def compact(
    storage: Storage, output: str, recipe: RecipeFiles, target_bytes: int, check: Callable[[], None]
) -> Generation:
    """Make a generation of a finished recipe, unless the newest is one of the same files.

    Holds the rows of one row group (`part_writer.GROUP_BYTES`) and of one piece of a shard.

    Args:
        check: raises when the caller has lost the recipe's lock, which keeps the shards from changing and the
            generation from being swept as abandoned.

    Raises:
        ConfigError: rows are missing or about to be replaced; nothing is written.
        OSError: as the store answers; what was begun is swept later.
    """
    sources = [recipe.shards[name] for name in sorted(recipe.shards)]
    footers = _footers(storage, sources)
    expected = _checked_rows(storage, recipe, sum(footer.num_rows for footer in footers))
    made_of = [[file.uri.rpartition("/")[2], file.size, file.etag or file.mtime] for file in sources]
    wanted = {"target_bytes": target_bytes, "sources": made_of}
    for newest in _complete(_generations(storage, output, recipe.id))[-1:]:
        made = json.loads(storage.read(join(newest, COMPLETE_FILE)))
        if {name: made[name] for name in wanted} == wanted:
            return Generation(newest, made["parts"], made["rows"], is_new=False)
    folder = join(_home(output, recipe.id), datetime.now(UTC).strftime(_STAMP))
    schema = _schema(footers)
    with PartWriter(storage, folder, schema, target_bytes) as writer:
        for table in _tables(storage, sources, schema):
            check()
            writer.write(table)
    check()
    if writer.rows != expected:
        raise ValueError(f"{redact(recipe.folder)} changed meanwhile: {writer.rows:,} of {expected:,} rows")
    made = {"parts": writer.parts, "rows": writer.rows, **wanted}
    storage.put(join(folder, COMPLETE_FILE), json.dumps(made, indent=1).encode())
    return Generation(folder, writer.parts, writer.rows, is_new=True)


def sweep(storage: Storage, output: str, recipe_id: str, keep_days: float) -> list[str]:
    """Remove generations that a newer one replaced `keep_days` ago or earlier, and what was never completed.

    The caller holds the recipe's lock, so that what is not complete is abandoned.

    Returns:
        The folders removed. `_complete.json` goes first, so that none looks complete without its parts.
    """
    generations = _generations(storage, output, recipe_id)
    complete = _complete(generations)
    kept_from = (datetime.now(UTC) - timedelta(days=keep_days)).strftime(_STAMP)
    replaced_by = dict(pairwise(complete))
    kept = {one for one in complete if one not in replaced_by or _stamp(replaced_by[one]) > kept_from}
    removed = sorted(generations.keys() - kept)
    for folder in removed:
        storage.remove(sorted(generations[folder], key=lambda uri: not uri.endswith(f"/{COMPLETE_FILE}")))
        if scheme_of(folder) == "file":
            Path(folder).rmdir()
    return removed


def _checked_rows(storage: Storage, recipe: RecipeFiles, rows: int) -> int:
    expected = expected_rows(storage, recipe)
    if expected is None or not recipe.shards:
        lack = "does not say how many rows it has" if expected is None else "has no rows"
    elif recipe.open_shards:
        lack = f"has {len(recipe.open_shards):,} open shards"
    elif recipe.retries:
        lack = "has retried rows that are not merged yet"
    elif rows != expected:
        lack = f"has {rows:,} of {expected:,} rows"
    else:
        return expected
    raise ConfigError(
        [
            f"{redact(recipe.folder)} {lack}; finish it by the command that began it "
            "(framescribe run --config …), then compact"
        ]
    )


def _footers(storage: Storage, files: Sequence[FileInfo]) -> list[pq.FileMetaData]:
    def footer(file: FileInfo) -> pq.FileMetaData:
        with open_exact(storage, file.uri) as source:
            return pq.read_metadata(source)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(footer, files))


def _schema(footers: Sequence[pq.FileMetaData]) -> pa.Schema:
    """All columns of the shards, and the lineage; where several versions made them, those of each."""
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    metadata: dict[bytes, bytes] = dict(schemas[-1].metadata or {})
    versions = dict.fromkeys((schema.metadata or {}).get(_VERSIONS, b"{}") for schema in schemas)
    if len(versions) > 1:
        metadata[_ALL_VERSIONS] = b"[" + b", ".join(versions) + b"]"
    return pa.unify_schemas(schemas).with_metadata(metadata)


def _tables(storage: Storage, files: Sequence[FileInfo], schema: pa.Schema) -> Iterator[pa.Table]:
    for file in files:
        with open_exact(storage, file.uri) as source:
            parquet = pq.ParquetFile(source, pre_buffer=True)
            for batch in parquet.iter_batches(ROWS_AT_ONCE):
                yield _conformed(pa.Table.from_batches([batch]), schema)


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with columns that an older version did not write, empty."""
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


def _home(output: str, recipe_id: str) -> str:
    return join(output, f"_compact/recipe={recipe_id}")


def _generations(storage: Storage, output: str, recipe_id: str) -> dict[str, list[str]]:
    """The files of each generation by its folder, oldest first."""
    found: dict[str, list[str]] = {}
    for file in storage.find(_home(output, recipe_id)):
        if part := _PART.fullmatch(file.uri):
            found.setdefault(part.group(1), []).append(file.uri)
    return dict(sorted(found.items()))


def _complete(generations: dict[str, list[str]]) -> list[str]:
    return [folder for folder, files in generations.items() if join(folder, COMPLETE_FILE) in files]


def _stamp(folder: str) -> str:
    return folder.rpartition("/")[2]
