"""What can go wrong, told apart by what it costs: an item, an engine, or the run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Why an item has no answer; the `error_code` of its result rows. `docs/results.md` explains each."""

    MANIFEST_ROW = "manifest_row"
    MISSING_MEDIA = "missing_media"
    SCHEME_NOT_ALLOWED = "scheme_not_allowed"
    PATH_NOT_ALLOWED = "path_not_allowed"
    BAD_URI = "bad_uri"
    ADDRESS_NOT_ALLOWED = "address_not_allowed"
    REDIRECT_NOT_ALLOWED = "redirect_not_allowed"
    FETCH_NOT_FOUND = "fetch_not_found"
    FETCH_DENIED = "fetch_denied"
    FETCH_FAILED = "fetch_failed"
    EMPTY_FILE = "empty_file"
    TOO_LARGE = "too_large"
    NOT_MEDIA = "not_media"
    NOT_RASTER = "not_raster"
    PAGE_NOT_FOUND = "page_not_found"
    PASSWORD_WRONG = "password_wrong"
    DECODE_TRUNCATED = "decode_truncated"
    DECODE_CORRUPT = "decode_corrupt"
    DECODE_CRASH = "decode_crash"
    DECODE_TIMEOUT = "decode_timeout"
    DECODER_MISSING = "decoder_missing"
    CLIP_OUTSIDE = "clip_outside"
    TOO_MANY_MEDIA = "too_many_media"
    MODALITY_NOT_SUPPORTED = "modality_not_supported"
    PLACEHOLDER_MISMATCH = "placeholder_mismatch"
    QUESTION_NOT_ALLOWED = "question_not_allowed"
    QUESTION_TOO_LONG = "question_too_long"
    PROMPT_TOO_LONG = "prompt_too_long"
    MISSING_METADATA = "missing_metadata"
    REQUEST_REJECTED = "request_rejected"
    OUTPUT_TRUNCATED = "output_truncated"
    ENGINE_CRASH = "engine_crash"
    ENGINE_FAILED = "engine_failed"

    @property
    def retryable(self) -> bool:
        """Whether the same command may get an answer later, with nothing changed.

        A decoder that crashed, hung or took too much memory has had a fresh process: it would again.
        """
        return self in {Code.FETCH_FAILED, Code.FETCH_DENIED, Code.ENGINE_CRASH, Code.ENGINE_FAILED}


@dataclass
class ItemError(Exception):
    """One item cannot be answered: it becomes a `failed` row, and nothing else stops.

    `code` is for machines, `reason` for people: what was wrong, where, and what to do.
    """

    code: Code
    reason: str

    def __post_init__(self) -> None:
        super().__init__(self.code, self.reason)

    def __str__(self) -> str:
        return f"{self.code.value}: {self.reason}"


class EngineError(Exception):
    """An engine cannot start or cannot go on: nothing is wrong with the items that it held."""


class OutputTakenError(Exception):
    """Another run took the output over from this one; what is durable stays, and that run goes on with it."""


class StorageError(Exception):
    """The run's own files can be read or written no longer: it stops; what is durable stays."""


class ConfigError(Exception):
    """The run cannot start as configured. `problems` has one message for each thing to mend."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
