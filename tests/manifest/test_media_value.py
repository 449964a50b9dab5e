"""What a media column may hold."""

from __future__ import annotations

import pytest

from pipeline.manifest.media_value import MediaValue, many_media, one_medium


@pytest.mark.parametrize(
    ("value", "uri", "data"),
    [
        ("a b/é%20.jpg", "s3://b/in/a b/é%20.jpg", None),
        ("../x.jpg", "s3://b/x.jpg", None),
        ("s3://other/x%2Fy.jpg?z#1", "s3://other/x%2Fy.jpg?z#1", None),
        ("/abs/x.jpg", "/abs/x.jpg", None),
        (b"\xff\xd8", None, b"\xff\xd8"),
        (b"", None, b""),
        ({"bytes": b"\xff", "path": "x.jpg"}, "x.jpg", b"\xff"),
        ({"bytes": b"\xff", "path": None}, None, b"\xff"),
        ({"bytes": None, "path": "x.jpg"}, "s3://b/in/x.jpg", None),
        ({"path": "x.jpg"}, "s3://b/in/x.jpg", None),
    ],
)
def test_one_medium(value, uri, data):
    assert one_medium(value, "s3://b/in") == MediaValue(uri, data)
    assert many_media(value, "s3://b/in") == [MediaValue(uri, data)]


@pytest.mark.parametrize("value", [None, "", " ", {"bytes": None, "path": None}, {"path": None}])
def test_nothing(value):
    assert one_medium(value, "/in") is None
    assert many_media([value, value], "/in") == []


@pytest.mark.parametrize("value", [5, True, ["x.jpg"], {"url": "x"}, {}, {"bytes": "aGk=", "path": "x"}])
def test_something_else(value):
    with pytest.raises(ValueError):
        one_medium(value, "/in")


def test_lists():
    assert many_media(["a", None, b"b", {"path": "c"}], "/in") == [
        MediaValue("/in/a", None),
        MediaValue(None, b"b"),
        MediaValue("/in/c", None),
    ]
    assert many_media('["a", "b"]', "/in") == [MediaValue("/in/a", None), MediaValue("/in/b", None)]
    assert many_media("[a].jpg", "/in") == [MediaValue("/in/[a].jpg", None)]
    with pytest.raises(ValueError):
        many_media(["a", 5], "/in")


def test_values_in_odd_shapes():
    assert one_medium({"bytes": None}, "/in") is None
    assert one_medium({"bytes": b"x", "path": 5}, "/in") == MediaValue(None, b"x")
    deep = "[" * 100_000
    assert many_media(deep, "/in") == [MediaValue(f"/in/{deep}", None)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"url": 1, "b": 2}, "an object with 'b', 'url'"),
        ({}, "an object with nothing in it"),
        (10**50, f"int 1{'0' * 39}"),
    ],
)
def test_what_else_it_is_is_told(value, kind):
    with pytest.raises(ValueError) as refused:
        one_medium(value, "/in")
    assert str(refused.value) == f"is {kind} where a URI, bytes or {{bytes, path}} belongs"
