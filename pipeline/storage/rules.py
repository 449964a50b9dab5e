"""Which of the URIs that a manifest names are read at all."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from pipeline.errors import Code, ItemError
from pipeline.storage.local import local_path
from pipeline.storage.uris import redact, scheme_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_allowed(uri: str, schemes: frozenset[str], roots: Sequence[str]) -> None:
    """Refuse what the manifest's author has no business with. `roots` are the local folders allowed.

    Raises:
        ItemError: not a URI, of another scheme, or a local path that leads out of the roots.
    """
    if _CONTROL.search(uri):
        raise ItemError(Code.BAD_URI, f"{redact(uri)!r} has control characters; mend the manifest")
    scheme = scheme_of(uri)
    if scheme not in schemes:
        raise ItemError(
            Code.SCHEME_NOT_ALLOWED,
            f"{redact(uri)}: only {', '.join(sorted(schemes))} are read (storage.allowed_schemes)",
        )
    if scheme == "file":
        path = os.path.realpath(local_path(uri))
        if not any(_is_below(path, os.path.realpath(local_path(root))) for root in roots):
            raise ItemError(
                Code.PATH_NOT_ALLOWED,
                f"{uri} is outside of the manifest's folder; name its folder in storage.allowed_roots",
            )


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root
