"""One item on its way through the prepare stage."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import Code, ItemError
from pipeline.results.dedup import Verdict
from pipeline.stages.reference import Reference, references_of
from pipeline.storage import Fetched

# Characters of a question that is too long, in the row that says so.
_SHOWN_OF_QUESTION = 200


@dataclass
class Item:
    """A manifest row and what has been found out of it so far. `tasks` are those wanted of it."""

    row: dict[str, Any]
    references: list[Reference]
    tasks: list[str]
    error: ItemError | None = None
    fetching: list[Future[Fetched]] = field(default_factory=list)
    fetched: list[Fetched] = field(default_factory=list)
    versions: list[str | None] = field(default_factory=list)
    media_uuids: list[Any] = field(default_factory=list)
    item_uuids: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    ready: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    media: list[dict[str, Any]] = field(default_factory=list)
    page_text: str | None = None
    recovered: bool | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, row: dict[str, Any], tasks: list[str]) -> Item:
        """The item of a canonical manifest row."""
        return cls(row, references_of(row), tasks)

    @property
    def needs_bytes(self) -> bool:
        """Whether nothing is wrong with it, and a task of it is not answered yet."""
        return self.error is None and (not self.ready or any(one is None for one in self.ready.values()))

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Keep the item's failure; it costs nothing else."""
        try:
            yield
        except ItemError as error:
            self.error = error

    def bound_question(self, most: int) -> None:
        """Refuse a question of the row's own that has more than so many characters; its row shows the first.

        Raises:
            ItemError: QUESTION_TOO_LONG.
        """
        question = self.row["question"] or ""
        if len(question) > most:
            self.row["question"] = f"{question[:_SHOWN_OF_QUESTION]}…"
            raise ItemError(
                Code.QUESTION_TOO_LONG,
                f"the row's question has {len(question):,} characters, more than "
                f"manifest.max_question_chars = {most:,}",
            )

    def forget_identity(self) -> None:
        """The object is not what it was taken for: what is known of that is not this item's."""
        self.item_uuids, self.verdicts, self.ready = {}, {}, {}

    def prepared(self, tasks: tuple[str, ...], unwanted: dict[str, Any]) -> dict[str, Any]:
        """The item as a row of `prepared_schema`, without `keep`."""
        identified = bool(self.item_uuids)
        return {
            "row": self.row["row"],
            "id": self.row["id"],
            "question": self.row["question"],
            "error_code": self.error.code.value if self.error else None,
            "error": self.error.reason if self.error else None,
            "media_uuids": self.media_uuids if identified else None,
            "media_versions": self.versions if identified else None,
            "item_uuids": [self.item_uuids[task] for task in tasks] if identified else None,
            "ready": [self.ready.get(task) if task in self.tasks else unwanted for task in tasks],
            "page_text": self.page_text,
            "recovered": self.recovered,
            "media": self.media,
            "seconds": self.seconds,
        }
