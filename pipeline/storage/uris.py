"""URIs as text: their parts, how they join, and what of them may be shown."""

from __future__ import annotations

import posixpath
import re

SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRETS = re.compile(r"^(?P<scheme>[^:]*://)(?:[^/?#]*@)?(?P<rest>[^?]*)(?P<query>\?.*)?$", re.DOTALL)


def scheme_of(uri: str) -> str:
    """The URI's scheme in lower case; `file` for a plain local path."""
    match = SCHEME.match(uri)
    return match.group(1).lower() if match else "file"


def is_absolute(uri: str) -> bool:
    """Whether the URI stands by itself: it has a scheme, or is an absolute local path."""
    return bool(SCHEME.match(uri)) or uri.startswith("/")


def join(base: str, relative: str) -> str:
    """The URI of `relative` below the folder `base`; `..` is resolved, never above the bucket."""
    if is_absolute(relative):
        return relative
    match = SCHEME.match(base)
    head, folder = (match.group(0), base[match.end() :]) if match else ("", base)
    root, slash, rest = folder.partition("/") if match else ("", "", folder)
    path = posixpath.normpath(posixpath.join("/" + rest if match else rest, relative))
    return f"{head}{root}{slash or '/'}{path.lstrip('/')}" if match else path


def parent(uri: str) -> str:
    """The URI of the folder that holds `uri`."""
    folder = uri.rstrip("/").rpartition("/")[0]
    return folder or ("/" if uri.startswith("/") else ".")


def redact(uri: str) -> str:
    """The URI without user name, password and query (which may be a signature): for logs and results.

    Never raises, whatever the text is.
    """
    found = _SECRETS.match(uri) if SCHEME.match(uri) else None
    return f"{found['scheme']}{found['rest']}{'?…' if found['query'] else ''}" if found else uri
