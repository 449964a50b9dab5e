"""What lies behind an exception of vLLM's."""

from __future__ import annotations


def root_cause(error: BaseException) -> str:
    """The innermost cause that says something: vLLM's outer errors often have an empty message."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    seen = {id(error)}
    inner = error.__cause__ or error.__context__
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        if str(inner):
            told = f"{type(inner).__name__}: {inner}"
        inner = inner.__cause__ or inner.__context__
    return told
