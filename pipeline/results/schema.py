"""The columns of a result file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_COLUMNS = [
    pa.field("task", pa.string(), nullable=False),
    pa.field("question", pa.string()),
    pa.field("status", pa.string(), nullable=False),
    pa.field("text", pa.string()),
    pa.field("error_code", pa.string()),
    pa.field("error", pa.string()),
    pa.field("retryable", pa.bool_()),
    pa.field("attempts", pa.int32(), nullable=False),
    pa.field("finish_reason", pa.string()),
    pa.field("prompt_tokens", pa.int32()),
    pa.field("output_tokens", pa.int32()),
    pa.field("source", pa.string()),
    pa.field("run", pa.string()),
    pa.field("item_uuid", pa.string()),
    pa.field("media_uuids", pa.list_(pa.string())),
    pa.field("media_versions", pa.list_(pa.string())),
    pa.field("recovered", pa.bool_()),
    pa.field("prepare_seconds", pa.float32()),
    pa.field("generate_seconds", pa.float32()),
    pa.field("manifest", pa.string(), nullable=False),
    pa.field("row", pa.int64(), nullable=False),
]
_ID = pa.field("id", pa.string(), nullable=False)

WAITING = "waiting"
"""The status of a row in a batch file whose item another row asks about; no finished shard has any."""

RESERVED = frozenset({"id", "recipe", *(field.name for field in _COLUMNS)})
"""Names that a passed-through column cannot have."""


def result_schema(keep: pa.Schema, lineage: dict[str, str] | None = None) -> pa.Schema:
    """The schema of a run's result files: id, passed-through columns, then what was found out.

    Args:
        keep: the passed-through columns with the manifest's types.
        lineage: put into the file's key-value metadata.
    """
    return pa.schema([_ID, *keep, *_COLUMNS], metadata=lineage)


def failed(code: str, reason: str, retryable: bool) -> dict[str, Any]:
    """The columns that make a row a failed one."""
    return {"status": "failed", "error_code": code, "error": reason, "retryable": retryable}
