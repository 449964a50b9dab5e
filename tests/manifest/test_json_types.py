"""Types for JSON values, and values that fit them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.manifest.json_types import infer, shape


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 2], pa.int64()),
        ([1, 0.5], pa.float64()),
        ([True, None], pa.bool_()),
        ([True, 1], pa.string()),
        ([1, "a"], pa.string()),
        ([2**63], pa.string()),
        (["2024-01-01"], pa.string()),
        ([None], pa.string()),
        ([{}], pa.string()),
        ([[], [1], [0.5]], pa.list_(pa.float64())),
        ([[]], pa.list_(pa.string())),
        ([[1], "a"], pa.string()),
        ([{"a": 1}, {"b": [None]}], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ],
)
def test_infer(values, kind):
    assert infer(values) == kind


POINT = pa.struct([("x", pa.int64()), ("y", pa.int64())])


@pytest.mark.parametrize(
    ("value", "kind", "shaped"),
    [
        (None, pa.int64(), None),
        (1, pa.float64(), 1.0),
        ("é", pa.string(), "é"),
        ({"é": [1, None]}, pa.string(), '{"é": [1, null]}'),
        (True, pa.string(), "true"),
        ([1, None], pa.list_(pa.int64()), [1, None]),
        ({"x": 1}, POINT, {"x": 1, "y": None}),
        (1e300, pa.float64(), 1e300),
    ],
)
def test_values_that_fit(value, kind, shaped):
    assert shape(value, kind) == shaped
    assert type(shape(value, kind)) is type(shaped)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (True, pa.int64()),
        (2**63, pa.int64()),
        (True, pa.float64()),
        (2**53 + 1, pa.float64()),
        (1, pa.bool_()),
        ("abc", pa.list_(pa.string())),
        ([1.5], pa.list_(pa.int64())),
        ({"x": 1, "z": 2}, POINT),
        ([("x", 1)], POINT),
    ],
)
def test_values_that_do_not_fit(value, kind):
    with pytest.raises(ValueError):
        shape(value, kind)
