"""The index finds what result files hold, whatever came, went or changed since it was saved."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from pipeline.results.answers import AnswerReader
from pipeline.results.index import ANSWERS, Index, Place
from pipeline.results.ledger import to_parquet
from pipeline.results.retired import Move, move, save_index, stale_files
from pipeline.storage import Storage, join
from tests.conftest import S3Server


def uid(number: int) -> str:
    return str(uuid.UUID(int=number << 100 | 7 << 64 | number))


def row(item: int, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {
        "item_uuid": uid(item),
        "status": status,
        "text": f"answer {item}",
        "finish_reason": "stop",
        "prompt_tokens": 3,
        "output_tokens": item,
        "run": "r1",
        "media_uuids": [uid(1000 + item)],
        "media_versions": [uid(2000 + item)],
        **more,
    }


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    if request.param == "disk":
        return Storage(), str(tmp_path / "recipe=r")
    server: S3Server = request.getfixturevalue("s3_server")
    return server.storage, f"{server.make_bucket()}/out/recipe=r"


def put(storage: Storage, folder: str, name: str, *rows: dict[str, Any]) -> None:
    storage.put(join(folder, f"{name}.parquet"), to_parquet(pa.Table.from_pylist(list(rows))))


def test_only_answered_rows_are_found_with_their_place(place: tuple[Storage, str]) -> None:
    storage, folder = place
    put(storage, folder, "s1", row(1), row(2, "failed"), row(3))
    put(storage, folder, "s2", row(4), row(5, item_uuid=None), row(6, media_versions=None))
    storage.put(join(folder, ".batches/s3/0-1.parquet"), b"not read")
    index = Index.load(storage, folder)
    places = index.find([uid(n) for n in (1, 2, 3, 4, 6, 9)])
    files = [one and one.uri.rpartition("/")[2] for one in places]
    assert files == ["s1.parquet", None, "s1.parquet", "s2.parquet", "s2.parquet", None]
    assert [one and one.position for one in places] == [0, None, 2, 0, 2, None]
    versions = [uid(2000 + n) for n in (1, 2, 5, 6)]
    assert index.find_media(versions) == [uid(1001), uid(1002), uid(1005), None]
    (found,) = AnswerReader(storage).read([places[2] or Place("", 0)])
    assert (found["text"], found["output_tokens"], found["run"]) == ("answer 3", 3, "r1")


def test_a_saved_index_is_brought_up_to_date(place: tuple[Storage, str]) -> None:
    storage, folder = place
    put(storage, folder, "s1", row(1), row(2, "failed"))
    put(storage, folder, "s2", row(3), row(1))
    Index.load(storage, folder).save(storage)
    again = Index.load(storage, folder)
    assert [bool(one) for one in again.find([uid(n) for n in (1, 2, 3, 4)])] == [True, False, True, False]
    put(storage, folder, "s1", row(4), row(2))  # replaced: 1 is only in s2 now
    put(storage, folder, "s3", row(5))
    storage.put(join(folder, "s2.parquet"), storage.read(join(folder, "s2.parquet")))
    now = Index.load(storage, folder)
    found = {n: one and (one.uri.rpartition("/")[2], one.position) for n in range(1, 7)
             for one in now.find([uid(n)])}  # fmt: skip
    assert found == {
        1: ("s2.parquet", 1),
        2: ("s1.parquet", 1),
        3: ("s2.parquet", 0),
        4: ("s1.parquet", 0),
        5: ("s3.parquet", 0),
        6: None,
    }
    assert now.find_media([uid(2001)]) == [uid(1001)]


def test_others_read_the_index(tmp_path: Path) -> None:
    storage, folder = Storage(), str(tmp_path / "recipe=r")
    put(storage, folder, "s1", row(1), row(2))
    Index.load(storage, folder).save(storage)
    found = duckdb.sql(
        f"select item_uuid, file, position from '{folder}/{ANSWERS}' order by position"
    ).fetchall()
    assert found == [(uuid.UUID(uid(1)), "s1.parquet", 0), (uuid.UUID(uid(2)), "s1.parquet", 1)]


def test_results_of_files_that_are_no_more_are_kept_as_long_as_they_tell_something(
    place: tuple[Storage, str],
) -> None:
    storage, folder = place
    put(storage, folder, "old-a", row(1), row(2))
    put(storage, folder, "old-b", row(3), row(4))
    put(storage, folder, "kept", row(5))
    storage.put(join(folder, ".batches/old-c/0-1.parquet"), to_parquet(pa.Table.from_pylist([row(6)])))
    moves = stale_files(storage, folder, {"kept", "new"})
    assert len(moves) == 3
    move(storage, moves[:1])
    storage.put(moves[1].target, storage.read(moves[1].source))  # a crash came before its removal
    move(storage, stale_files(storage, folder, {"kept", "new"}))
    assert stale_files(storage, folder, {"kept", "new"}) == []
    everything = [uid(n) for n in range(1, 7)]
    assert all(Index.load(storage, folder).find(everything))
    put(storage, folder, "new", row(1), row(2), row(3))
    save_index(storage, folder)
    hidden = [info.uri.rpartition("/")[2] for info in storage.find(join(folder, ".retired"))]
    assert hidden == ["old-b.parquet", "old-c.0-1.parquet"]
    assert all(Index.load(storage, folder).find(everything))


def test_moves_name_where_files_go(tmp_path: Path) -> None:
    storage, folder = Storage(), str(tmp_path / "recipe=r")
    put(storage, folder, "a", row(1))
    assert stale_files(storage, folder, set()) == [Move(f"{folder}/a.parquet", f"{folder}/.retired/a.parquet")]


def test_answers_are_read_from_any_row_group(tmp_path: Path) -> None:
    storage, folder = Storage(), str(tmp_path / "recipe=r")
    put(storage, folder, "s1", *(row(n) for n in range(2500)))
    index = Index.load(storage, folder)
    asked = [2499, 0, 1023, 1024, 2048, 7]
    places = [one for one in index.find([uid(n) for n in asked]) if one]
    found = AnswerReader(storage).read(places)
    assert [one["text"] for one in found] == [f"answer {n}" for n in asked]
    with pytest.raises(OSError, match="only 2500 rows"):
        AnswerReader(storage).read([Place(places[0].uri, 2500)])
    with pytest.raises(FileNotFoundError):
        AnswerReader(storage).read([Place(f"{folder}/gone.parquet", 0)])
