"""Columns of roles: which are taken, which types suit them, and what is told where none does."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.config import ColumnsConfig
from pipeline.manifest.columns import check_types, choose_columns, missing
from pipeline.manifest.manifest import Columns

STRUCT = pa.struct([("path", pa.string()), ("more", pa.int8())])
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.null()]
MEDIA = [*TEXTS, pa.binary(), pa.large_binary(), pa.binary_view(), STRUCT, pa.struct([("bytes", pa.binary())])]
LISTS = [
    pa.list_(pa.string()),
    pa.large_list(pa.string()),
    pa.list_(pa.string(), 2),
    pa.list_(pa.dictionary(pa.int32(), pa.string())),
    pa.list_(pa.null()),
    pa.list_(STRUCT),
]
OTHERS = [pa.float64(), pa.bool_(), pa.struct([("url", pa.string())]), pa.list_(pa.int8())]


@pytest.mark.parametrize(
    ("roles", "suits", "not_"),
    [
        (("id", "password"), [*TEXTS, pa.int8(), pa.uint64()], [*OTHERS, *LISTS, pa.binary()]),
        (("question",), TEXTS, [*OTHERS, *LISTS, pa.binary(), pa.int64()]),
        (("image", "video", "document"), MEDIA, [*OTHERS, *LISTS, pa.int64()]),
        (("images",), [*MEDIA, *LISTS], [*OTHERS, pa.int64()]),
    ],
)
def test_types_that_suit_a_role(roles, suits, not_):
    for role in roles:
        for kind in [*suits, *not_]:
            found = check_types(Columns(**{role: "c"}), pa.schema([("c", kind)]), "f")
            assert bool(found) == (kind in not_), (role, kind, found)
            assert not found or found[0].startswith(f"manifest.columns.{role}: 'c' of f is {kind}; ")


def test_documents_and_passwords_are_only_taken_where_they_are_named():
    schema = pa.schema([(name, pa.string()) for name in ("image", "document", "password", "question", "key")])
    assert choose_columns(ColumnsConfig(), [schema], {}) == (Columns(image="image", question="question"), [])
    named = ColumnsConfig(document="document", password="password", image="key")
    assert choose_columns(named, [schema], {})[0] == Columns(
        image="key", document="document", password="password", question="question"
    )


def test_thirty_columns_are_shown_and_the_rest_counted():
    names = [f"column{n}" for n in range(31)]
    assert missing("it", "x", names[:30]) == f"it has no column 'x' (its columns: {', '.join(names[:30])})"
    assert missing("it", "x", names).endswith("column29 and 1 more)")


def test_passwords_are_not_passed_through(problems, tmp_path):
    (tmp_path / "m.jsonl").write_text('{"document": "a.pdf", "pw": "x"}\n')
    columns = {"document": "document", "password": "pw"}
    (only,) = problems(tmp_path / "m.jsonl", columns=columns, keep=["pw"])
    assert only == "manifest.keep: 'pw' has the passwords; leave it out"
