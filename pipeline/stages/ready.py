"""Answers that an item has before it comes to an engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.results.answers import AnswerReader
from pipeline.results.dedup import Verdict
from pipeline.results.schema import WAITING
from pipeline.storage import Storage

UNWANTED = "unwanted"
READY_TYPE = pa.struct(
    [
        ("status", pa.string()),
        ("text", pa.string()),
        ("error_code", pa.string()),
        ("error", pa.string()),
        ("retryable", pa.bool_()),
        ("attempts", pa.int32()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("source", pa.string()),
        ("run", pa.string()),
        ("recovered", pa.bool_()),
    ]
)
"""The columns of a result that an answer decides."""

OUTCOME = tuple(field.name for field in READY_TYPE)

_reader: tuple[Storage, AnswerReader] | None = None


def reader_of(storage: Storage) -> AnswerReader:
    """The process's reader of earlier answers; Ray runs many batches in one process."""
    global _reader  # noqa: PLW0603
    if _reader is None or _reader[0] != storage:
        _reader = storage, AnswerReader(storage)
    return _reader[1]


def ready_answer(verdict: Verdict, reader: AnswerReader) -> dict[str, Any] | None:
    """The answer that a verdict brings, as a value of `READY_TYPE`; None if the engine must be asked.

    An earlier answer that cannot be read any more is asked for again.
    """
    match verdict.kind:
        case "own":
            return verdict.outcome
        case "settled":
            return {**(verdict.outcome or {}), "source": "duplicate", "attempts": 0}
        case "wait":
            return {"status": WAITING, "source": "duplicate", "attempts": 0}
        case "cached" if verdict.place:
            try:
                (found,) = reader.read([verdict.place])
            except OSError:
                return None
            return {**found, "status": "ok", "source": "cache", "attempts": 0}
    return None


def unwanted() -> dict[str, Any]:
    """In place of an answer: this task is not asked of this item now."""
    return {"status": UNWANTED}
