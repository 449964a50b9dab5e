"""Identities: values worked out with hashlib and the RFC, not with the module."""

import hashlib
import uuid

from pipeline.identity import (
    identified,
    item_uuid,
    media_uuid,
    object_uuid,
    page_uuid,
    pixels_uuid,
    recipe_id,
    segment_uuid,
    uuid8,
)
from pipeline.segment import Segment


def test_a_page_has_its_own_identity_and_with_a_password_another() -> None:
    uuids = {page_uuid("m", page, password) for page in (1, 2) for password in (None, "a", "b")} | {
        page_uuid("n", 1, "a"),
        page_uuid("n", 1),
    }
    assert len(uuids) == 8
    assert page_uuid("m", 1, "a") == page_uuid("m", 1, "a")
    assert page_uuid("m", 1, "") == page_uuid("m", 1)


def test_a_part_of_a_video_has_its_own_identity() -> None:
    uuids = {
        segment_uuid(media, Segment(*part)) for media in "mn" for part in ((0, 2), (0, 3), (1, 2), (1, None))
    }
    assert len(uuids) == 8
    # As it is written down: what was answered once is found again by it.
    assert segment_uuid("m", Segment(1.5, None)) == uuid8(b'{"media":"m","segment":[1.5,null]}')
    assert identified("m", None, None, Segment(1.5, None)) == segment_uuid("m", Segment(1.5, None))
    assert identified("m", None, None) == "m"
    assert object_uuid("u", "1") == uuid8(b'["u","1"]')
    assert object_uuid("u", "1", Segment(0.0, 2.0)) == uuid8(b'["u","1",[0.0,2.0]]')


def test_identities_are_what_they_were() -> None:
    """Values of an earlier commit: with others, nothing that was answered before would be known again."""
    assert media_uuid(b"video") == "7431ee3c-86f1-8fa4-8036-b626be8cee3b"
    assert (
        item_uuid([media_uuid(b"video")], "Describe.", {"model": "m"}) == "31d12980-2a07-897d-9fd5-d769d77dd7b3"
    )
    assert object_uuid("s3://b/v.mp4", "5:abc") == "c4908da2-bdee-8157-98ad-fa284a744aba"


def test_media_uuid_is_a_version_8_uuid_of_blake2b() -> None:
    found = uuid.UUID(media_uuid(b"picture"))
    digest = hashlib.blake2b(b"picture", digest_size=16).hexdigest()
    assert found.version == 8
    assert found.variant == uuid.RFC_4122
    # Every digit but the version's and the variant's is the digest's.
    assert [a for i, a in enumerate(found.hex) if i not in (12, 16)] == [
        a for i, a in enumerate(digest) if i not in (12, 16)
    ]


def test_pixels_differ_by_bytes_and_by_settings() -> None:
    a, b = media_uuid(b"a"), media_uuid(b"b")
    uuids = {pixels_uuid(m, {"max_pixels": p}) for m in (a, b) for p in (None, 1000, 2000)}
    assert len(uuids) == 6
    assert pixels_uuid(a, {"x": 1, "y": 2}) == pixels_uuid(a, {"y": 2, "x": 1})


def test_recipe_id_ignores_the_order_of_fields_only() -> None:
    assert recipe_id({"a": 1, "b": {"c": 2, "d": 3}}) == recipe_id({"b": {"d": 3, "c": 2}, "a": 1})
    assert recipe_id({"a": 1}) != recipe_id({"a": 2})
    assert recipe_id({"a": "1"}) != recipe_id({"a": 1})


def test_item_uuid_depends_on_media_order_question_and_recipe() -> None:
    base = item_uuid(["m1", "m2"], "What?", {"t": 0})
    assert base == item_uuid(["m1", "m2"], "What?", {"t": 0})
    others = [
        item_uuid(["m2", "m1"], "What?", {"t": 0}),
        item_uuid(["m1"], "What?", {"t": 0}),
        item_uuid(["m1", "m2"], "Why?", {"t": 0}),
        item_uuid(["m1", "m2"], "What?", {"t": 1}),
    ]
    assert len({base, *others}) == 5
