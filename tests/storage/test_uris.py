"""URIs as text."""

from __future__ import annotations

import pytest

from pipeline.storage import is_absolute, join, parent, redact, scheme_of


@pytest.mark.parametrize(
    ("base", "relative", "joined"),
    [
        ("s3://b/a", "c.jpg", "s3://b/a/c.jpg"),
        ("s3://b/a/", "../c.jpg", "s3://b/c.jpg"),
        ("s3://b/a", "../../../c.jpg", "s3://b/c.jpg"),
        ("s3://b", "c d#?.jpg", "s3://b/c d#?.jpg"),
        ("/data/m", "x/../c.jpg", "/data/m/c.jpg"),
        ("/data/m", "/other/c.jpg", "/other/c.jpg"),
        ("s3://b/a", "gs://o/c.jpg", "gs://o/c.jpg"),
    ],
)
def test_join(base: str, relative: str, joined: str) -> None:
    assert join(base, relative) == joined


def test_parts() -> None:
    assert parent("s3://b/a/m.parquet") == "s3://b/a"
    assert parent("/data/m.parquet") == "/data"
    assert is_absolute("s3://b/x")
    assert is_absolute("/x")
    assert not is_absolute("images/x.jpg")
    assert [scheme_of(uri) for uri in ("S3://b/x", "/x", "x", "HTTPS://h")] == ["s3", "file", "file", "https"]


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://user:pw@host/a.jpg?X-Amz-Signature=abc", "https://host/a.jpg?…"),
        ("https://user:p@w@host:1/a", "https://host:1/a"),
        ("https://host/a@b", "https://host/a@b"),
        ("https://[bad?token=1", "https://[bad?…"),
        ("az://container/x?sv=1&sig=2#y", "az://container/x?…"),
        ("s3://bucket/a b#1.jpg", "s3://bucket/a b#1.jpg"),
        ("https://host/a?x=1\ny=2", "https://host/a?…"),
        ("/data/a?b.jpg", "/data/a?b.jpg"),
        ("", ""),
    ],
)
def test_redact(uri: str, shown: str) -> None:
    assert redact(uri) == shown
