"""Parts of videos in the prepare stage: their own frames, names and answers, of a file that is fetched once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import MediaConfig
from pipeline.identity import media_uuid, object_uuid, uuid8
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec
from pipeline.results.dedup import Claim, Dedup, Settled
from pipeline.stages.prepare import Prepare
from tests.media.clips import FPS, clip, seen
from tests.stages.conftest import png
from tests.stages.test_reference import Counting, prepared

VIDEO = clip()
"""5 s, ten frames a second, whose frame k is known by its grey."""

NAMES = {"start": "from", "end": "to", "video": "v"}


class Knowing(Dedup):
    """Answers that know media which an earlier run has read: version → media uuid."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__([])
        self.known = known

    def known_media(self, versions: Sequence[str]) -> list[str | None]:
        return [self.known.get(version) for version in versions]


def staged(prepare: Prepare, storage: Counting, **video: Any) -> Prepare:
    media = MediaConfig.model_validate({"video": {"num_frames": 3, **video}})
    loader = MediaLoader.of(media, load_spec("qwen2_5_vl"))
    return replace(prepare, storage=storage, loader=loader, max_bytes=10**6, prompts={"caption": "Describe."})


@pytest.fixture
def storage(tmp_path: Path) -> Counting:
    (tmp_path / "a.mp4").write_bytes(VIDEO)
    return Counting(root=str(tmp_path))


def frames(item: dict[str, Any]) -> list[int]:
    (media,) = item["media"]
    return seen(media.pixels)


def test_parts_of_one_file_have_their_own_frames_and_answers(
    prepare: Prepare, storage: Counting, tmp_path: Path
) -> None:
    (tmp_path / "b.mp4").write_bytes(VIDEO)
    rows = [
        {"v": "a.mp4"},
        {"v": "a.mp4", "from": 1, "to": 2},
        {"v": "a.mp4", "from": 3},
        {"v": "b.mp4", "from": "1.0", "to": 2.0},
        {"v": "a.mp4", "to": 2},
        {"v": "a.mp4", "from": 0},
    ]
    items = prepared(staged(prepare, storage), tmp_path, rows, **NAMES)
    assert [item["error"] for item in items] == [None] * 6
    whole, middle, tail, same, head, zero = items
    assert (frames(whole), frames(middle), frames(tail), frames(head)) == (
        [0, 24, 49],
        [10, 14, 19],
        [30, 39, 49],
        [0, 9, 19],
    )
    assert middle["media"][0].metadata["frames_indices"] == [10, 14, 19]
    assert middle["media"][0].metadata["fps"] == FPS
    assert sorted(storage.fetched) == ["a.mp4", "b.mp4"]
    for name in ("item_uuids", "media_uuids", "media_versions"):
        assert len({item[name][0] for item in (whole, middle, tail, head)}) == 4, name
        assert (zero[name] == whole[name]) is True, name
    assert len({item["media"][0].uuid for item in (whole, middle, tail, head)}) == 4
    # The same part of the same bytes under another name asks nothing more.
    assert (same["media_uuids"], same["item_uuids"]) == (middle["media_uuids"], middle["item_uuids"])
    assert same["media_versions"] != middle["media_versions"]
    assert (same["ready"][0]["source"], same["media"]) == ("duplicate", [])


def test_a_row_without_seconds_is_what_it_was_without_the_columns(
    prepare: Prepare, storage: Counting, tmp_path: Path
) -> None:
    stage = staged(prepare, storage)
    (plain,) = prepared(stage, tmp_path, [{"v": "a.mp4"}], video="v")
    again = replace(stage, answers=Dedup([]))
    (named, _) = prepared(again, tmp_path, [{"v": "a.mp4"}, {"v": "a.mp4", "from": 1, "to": 2}], **NAMES)
    names = ("item_uuids", "media_uuids", "media_versions")
    assert [plain[name] for name in names] == [named[name] for name in names]
    # Worked out as the identity is written down, so that answers of earlier versions stay known.
    assert plain["media_uuids"] == [media_uuid(VIDEO)] == [uuid8(VIDEO)]
    told = {"media": plain["media_uuids"], "question": "Describe.", "answering": {"model": "m"}}
    assert plain["item_uuids"] == [uuid8(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())]
    version = storage.version(str(tmp_path / "a.mp4"))
    assert plain["media_versions"] == [object_uuid(str(tmp_path / "a.mp4"), version or "")]


def test_what_a_row_does_not_say_is_the_runs_setting(
    prepare: Prepare, storage: Counting, tmp_path: Path
) -> None:
    rows = [{"v": "a.mp4"}, {"v": "a.mp4", "from": 2, "to": 3}, {"v": "a.mp4", "from": 1}]
    plain, same, other = prepared(staged(prepare, storage, start=2, end=3), tmp_path, rows, **NAMES)
    assert frames(plain) == [20, 24, 29]
    assert same["item_uuids"] == plain["item_uuids"] != other["item_uuids"]
    assert plain["media_uuids"] == [media_uuid(VIDEO)]
    assert frames(other) == [10, 19, 29]


def test_bad_parts_cost_their_rows(prepare: Prepare, storage: Counting, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(png("red"))
    rows = [
        {"v": "a.mp4", "from": 3, "to": 3},
        {"v": "a.mp4", "from": 4, "to": 3},
        {"v": "a.mp4", "to": 0},
        {"v": "a.mp4", "from": -1},
        {"v": "a.mp4", "from": "soon"},
        {"image": "p.png", "from": 1},
        {"v": "a.mp4", "from": 5},
        {"v": "a.mp4", "from": 4, "to": 50},
        {"image": "p.png"},
    ]
    items = prepared(staged(prepare, storage), tmp_path, rows, **NAMES)
    assert [item["error_code"] for item in items] == [*["manifest_row"] * 6, "clip_outside", None, None]
    assert items[1]["error"] == "the row's start (4 s) is not before its end (3 s)"
    assert items[2]["error"] == (
        "the row's start (0 s, the run's media.video.start) is not before its end (0 s)"
    )
    assert "manifest.columns.start" in items[6]["error"]
    assert frames(items[7]) == [40, 44, 49]


def test_a_picture_beside_the_video_stays_whole(prepare: Prepare, storage: Counting, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(png("red"))
    row = {"image": "p.png", "v": "a.mp4", "from": 1, "to": 2}
    (item,) = prepared(staged(prepare, storage), tmp_path, [row], **NAMES)
    assert [media.kind for media in item["media"]] == ["image", "video"]
    assert item["media_uuids"][0] == media_uuid(png("red"))
    assert item["media_uuids"][1] != media_uuid(VIDEO)


def test_an_unchanged_file_is_not_fetched_for_parts_that_are_known(
    prepare: Prepare, storage: Counting, tmp_path: Path
) -> None:
    row = {"v": "a.mp4", "from": 1, "to": 2}
    stage = staged(prepare, storage)
    (first,) = prepared(stage, tmp_path, [row], **NAMES)
    assert storage.fetched == ["a.mp4"]
    answers = Knowing({first["media_versions"][0]: first["media_uuids"][0]})
    answer = {"status": "ok", "text": "known", "attempts": 1, "source": "engine"}
    answers.claim([Claim(first["item_uuids"][0], "earlier")])
    answers.settle([Settled(Claim(first["item_uuids"][0], "earlier"), answer)])
    later = replace(stage, answers=answers, versions_known=True)
    storage.fetched.clear()
    (known,) = prepared(later, tmp_path, [row], **NAMES)
    assert (known["ready"][0]["text"], storage.fetched) == ("known", [])
    assert known["item_uuids"] == first["item_uuids"]
    # Another part of the same object is another medium: it is not taken for the known one.
    (other,) = prepared(later, tmp_path, [{**row, "to": 3}], **NAMES)
    assert (other["ready"][0], storage.fetched, frames(other)) == (None, ["a.mp4"], [10, 19, 29])


def test_bytes_in_the_manifest_have_parts_too(prepare: Prepare, storage: Counting) -> None:
    stage = staged(prepare, storage)
    for segment, expected in ((None, [0, 24, 49]), (stage.loader.segment.own(1.0, 2.0), [10, 14, 19])):
        uuid, media = stage.loader.load("video", VIDEO, segment=segment)
        assert seen(media.pixels) == expected
        assert (uuid == media_uuid(VIDEO)) == (segment is None)
