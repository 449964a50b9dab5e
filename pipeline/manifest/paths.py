"""Columns by name, or by a dotted path into structs and objects: `media.image.url`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def type_at(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of the column, or of the field inside of one; None if there is none. Whole names go first."""
    if name in schema.names:
        return schema.field(schema.names.index(name)).type
    column, *inner = name.split(".")
    if not inner or schema.names.count(column) != 1:
        return None
    kind = schema.field(column).type
    for part in inner:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind


def value_at(values: Mapping[str, Any], name: str) -> Any:
    """The value of that name, or of that path through the objects inside; None where the path ends early."""
    if name in values:
        return values[name]
    value: Any = values
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def column_at(table: pa.Table, name: str) -> pa.ChunkedArray:
    """The column of that name, or the field at that path, null where a struct around it is."""
    if name in table.column_names:
        return table.column(name)
    column, *inner = name.split(".")
    return pc.struct_field(table.column(column), inner)
