"""Which column plays which role, and whether every file of the manifest agrees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from pipeline.config import ColumnsConfig, ManifestConfig
from pipeline.manifest.json_types import settled
from pipeline.manifest.manifest import ONLY_NAMED, Columns
from pipeline.manifest.paths import type_at

_ROLES = ("id", "image", "images", "video", "document", "password", "start", "end", "question")
_CLIP = ("start", "end")
_SHOWN = 30


def choose_columns(
    config: ColumnsConfig, schemas: Sequence[pa.Schema], customary: Mapping[str, Sequence[str]]
) -> tuple[Columns, list[str]]:
    """Column of each role: the one named, else the one with the role's own name; and what is wrong.

    `customary` are names for roles that are used where none of the roles with media has a column so (and
    for the id where it has none).
    """
    there = names_of(schemas)
    chosen: dict[str, str] = {}
    problems: list[str] = []
    for role in _ROLES:
        named = getattr(config, role)
        if named is None and role in there and role not in ONLY_NAMED:
            chosen[role] = role
        elif named is not None and is_there(named, schemas):
            chosen[role] = named
        elif named is not None:
            problems.append(missing(f"manifest.columns.{role}: the manifest", named, there))
    has_media = bool(Columns(**chosen).media())
    for role, names in customary.items():
        known = next((name for name in names if name in there), None)
        if known and role not in chosen and not problems and (role == "id" or not has_media):
            chosen[role] = known
    columns = Columns(**chosen)
    media = list(columns.media().values())
    if not media and not problems:
        problems.append(
            "manifest.columns: no column has media; name one as image, images, video or document "
            f"({_there(there)})"
        )
    if media and not problems and columns.video is None:
        problems += [
            f"manifest.columns.{role}: it says which part of a video is meant, and no column has videos; name "
            "one in manifest.columns.video, or leave it out"
            for role in _CLIP
            if role in chosen
        ]
    twice = sorted({column for column in media if media.count(column) > 1})
    problems += [f"manifest.columns: {column!r} is named for two roles with media" for column in twice]
    return columns, problems


def names_of(schemas: Sequence[pa.Schema]) -> list[str]:
    """The columns of all files, each once."""
    return list(dict.fromkeys(name for schema in schemas for name in schema.names))


def is_there(name: str, schemas: Sequence[pa.Schema]) -> bool:
    """Whether any file has the column, or a field at that dotted path."""
    return any(type_at(schema, name) is not None for schema in schemas)


def check_keep(config: ManifestConfig, schemas: Sequence[pa.Schema], reserved: Collection[str]) -> list[str]:
    """What is wrong with the columns to pass through."""
    there = names_of(schemas)
    problems = [
        missing("manifest.keep: the manifest", name, there)
        for name in config.keep
        if not is_there(name, schemas)
    ]
    problems += [
        f"manifest.keep: {name!r} is the name of a result column; rename it in the manifest"
        for name in config.keep
        if name in reserved
    ]
    twice = sorted({name for name in config.keep if config.keep.count(name) > 1})
    if config.columns.password in config.keep:
        problems.append(f"manifest.keep: {config.columns.password!r} has the passwords; leave it out")
    return problems + [f"manifest.keep: {name!r} is named twice" for name in twice]


def missing(where: str, name: str, there: Collection[str]) -> str:
    """The problem that there is no such column, with the nearest names and all there are."""
    near = get_close_matches(name, there, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{where} has no column {name!r}{hint} ({_there(there)})"


def unify_keep(names: Iterable[str], schemas: dict[str, pa.Schema]) -> tuple[pa.Schema, list[str]]:
    """The types of the columns to pass through, wide enough for every file (name → schema)."""
    fields: list[pa.Field] = []
    problems: list[str] = []
    for name in names:
        found = {file: type_at(schema, name) for file, schema in schemas.items()}
        types = {file: _plain(kind) for file, kind in found.items() if kind is not None}
        try:
            merged = pa.unify_schemas(
                [pa.schema([(name, kind)]) for kind in types.values()], promote_options="permissive"
            )
        except pa.ArrowException:
            shown = "; ".join(f"{kind} in {file}" for kind, file in {k: f for f, k in types.items()}.items())
            problems.append(f"manifest.keep: the files have {name!r} with different types: {shown}")
            continue
        fields.append(pa.field(name, merged.field(name).type))
    return pa.schema(fields), problems


def settle_keep(names: Iterable[str], schemas: dict[str, pa.Schema]) -> pa.Schema:
    """The types of the columns to pass through where they come from JSON: text for what has several."""
    found = {name: [type_at(schema, name) or pa.null() for schema in schemas.values()] for name in names}
    return pa.schema([(name, settled(kinds)) for name, kinds in found.items()])


def check_types(columns: Columns, schema: pa.Schema, file: str) -> list[str]:
    """What is wrong with the declared types of a Parquet file's columns."""
    problems: list[str] = []
    for role, column in columns.named().items():
        kind = _plain(type_at(schema, column) or pa.null())
        if not _suits(role, kind):
            problems.append(f"manifest.columns.{role}: {column!r} of {file} is {kind}; {_WANTED[role]}")
    return problems


_MEDIUM = "text (a URI), binary, or a struct {bytes, path}"
_WANTED = {
    "id": "an id is text or a whole number: cast it",
    "question": "a question is text",
    "image": f"it has to be {_MEDIUM}; a list belongs in the role `images`",
    "video": f"it has to be {_MEDIUM}",
    "document": f"it has to be {_MEDIUM}",
    "password": "a password is text or a whole number",
    "start": "seconds are numbers, or text that is one: cast it",
    "end": "seconds are numbers, or text that is one: cast it",
    "images": f"it has to be a list of {_MEDIUM}",
}


def _suits(role: str, kind: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return True
    if role in ("id", "password"):
        return _is_text(kind) or pa.types.is_integer(kind)
    if role in _CLIP:
        return _is_text(kind) or _is_number(kind)
    if role == "question":
        return _is_text(kind)
    if role == "images" and _is_list(kind):
        kind = _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return any(field.name in ("bytes", "path") for field in kind)
    return _is_text(kind) or _is_bytes(kind) or pa.types.is_null(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _there(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_SHOWN]) or "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"its columns: {shown}{more}"
