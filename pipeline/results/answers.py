"""Answers as they lie in result files: read back by place, a few row groups at a time."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.results.index import Place
from pipeline.storage import Storage

COLUMNS = ("text", "finish_reason", "prompt_tokens", "output_tokens", "run", "recovered")
"""What another row with the same item uuid takes over."""

_T = TypeVar("_T")
_OPEN_FILES = 16
_ROW_GROUPS = 64


class AnswerReader:
    """Keeps the last row groups, since equal items tend to stand together in both manifests."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: OrderedDict[str, pq.ParquetFile] = OrderedDict()
        self._groups: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()

    def read(self, places: Sequence[Place]) -> list[dict[str, Any]]:
        """The `COLUMNS` of the row at each place.

        Raises:
            OSError: the file is not there any more, or cannot be read.
        """
        by_group: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for number, place in enumerate(places):
            group, offset = self._locate(place)
            by_group[place.uri, group].append((number, offset))
        found: dict[int, dict[str, Any]] = {}
        for (uri, group), wanted in by_group.items():
            rows = self._group(uri, group).take([offset for _, offset in wanted]).to_pylist()
            found.update(zip((number for number, _ in wanted), rows, strict=True))
        return [found[number] for number in range(len(places))]

    def _locate(self, place: Place) -> tuple[int, int]:
        metadata = self._file(place.uri).metadata
        start = 0
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            if place.position < start + rows:
                return group, place.position - start
            start += rows
        raise OSError(f"{place.uri} has only {start} rows")

    def _file(self, uri: str) -> pq.ParquetFile:
        return _kept(self._files, uri, lambda: pq.ParquetFile(self._storage.open(uri)), _OPEN_FILES)

    def _group(self, uri: str, group: int) -> pa.Table:
        read = lambda: self._file(uri).read_row_group(group, columns=list(COLUMNS))  # noqa: E731
        return _kept(self._groups, (uri, group), read, _ROW_GROUPS)


def _kept(kept: OrderedDict[Any, _T], key: Any, make: Callable[[], _T], most: int) -> _T:
    if key in kept:
        kept.move_to_end(key)
        return kept[key]
    kept[key] = made = make()
    if len(kept) > most:
        kept.popitem(last=False)
    return made
