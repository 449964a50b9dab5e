"""Arrow types for JSON values, strictly: nothing is truncated, parsed, or dropped without a word.

pyarrow's own conversion makes 1 of 1.5 for an int64 column, drops unknown keys, and reads dates out of text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce
from typing import Any

import pyarrow as pa

_INT64 = range(-(2**63), 2**63)


def infer(values: Iterable[object]) -> pa.DataType:
    """The type that holds all the values. What has several types, or none, is kept as text."""
    return settled([type_of_all(values)])


def type_of_all(values: Iterable[object]) -> pa.DataType:
    """The type of all the values as far as they tell it: null where there are none."""
    try:
        return reduce(_merge, map(_type_of, values), pa.null())
    except UnicodeEncodeError:  # a name inside that is no text
        return pa.string()


def settled(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The type that holds the values of all these types, with text for what is still unknown."""
    return _settle(reduce(_merge, kinds, pa.null()))


def shape(value: Any, kind: pa.DataType) -> object:
    """The value as `kind` takes it; where `kind` is text, other values become their JSON text. Bytes, which
    JSON has not, are for values from elsewhere.

    Raises:
        ValueError: the value is not of that type.
    """
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if pa.types.is_large_binary(kind) and isinstance(value, bytes):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_int64(kind) and is_number and isinstance(value, int) and value in _INT64:
        return value
    if pa.types.is_float64(kind) and is_number and abs(value) <= 2**53:
        return float(value)
    if pa.types.is_float64(kind) and isinstance(value, float):
        return value
    if pa.types.is_list(kind) and isinstance(value, list):
        return [shape(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {field.name: field.type for field in kind}
        if unknown := sorted(value.keys() - fields.keys()):
            raise ValueError(f"has the field {unknown[0]!r}, which the first rows have not")
        return {name: shape(value.get(name), kind_of) for name, kind_of in fields.items()}
    raise ValueError(f"is {_shown(value)}, where the first rows have {kind}")


def _type_of(value: object) -> pa.DataType:
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if value in _INT64 else pa.string()
        case float():
            return pa.float64()
        case list():
            return pa.list_(reduce(_merge, map(_type_of, value), pa.null()))
        case dict():
            return pa.struct([(name, _type_of(part)) for name, part in value.items()])
        case _:
            return pa.string()


def _merge(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_merge(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merge(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()


def _settle(kind: pa.DataType) -> pa.DataType:
    """No null and no empty struct type inside: Parquet cannot hold the second, nor later values the first."""
    if pa.types.is_list(kind):
        return pa.list_(_settle(kind.value_type))
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([(field.name, _settle(field.type)) for field in kind])
    return pa.string() if pa.types.is_null(kind) or pa.types.is_struct(kind) else kind


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "…"
