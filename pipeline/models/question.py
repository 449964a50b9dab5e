"""What is asked of an item: its own question, or the task's prompt with the text of its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

PAGE_TEXT = "{page_text}"
_SLOT = re.compile(r"\{\{page_text\}\}|\{page_text\}")


def wants_page_text(prompts: Iterable[str]) -> bool:
    """Whether a prompt has a place for the text of a page."""
    return any(match != f"{{{PAGE_TEXT}}}" for prompt in prompts for match in _SLOT.findall(prompt))


def asked(own: str | None, prompt: str, page_text: str, quoted: Callable[[str], str] = str) -> str:
    """The question put to an item.

    In the task's prompt `{page_text}` is replaced and `{{page_text}}` stands for those words themselves; no
    other brace means anything. The item's own question is asked as it is.

    Args:
        quoted: what is done to words that come from the manifest or a document, before they are put in.
    """
    if own:
        return quoted(own)
    return _SLOT.sub(lambda slot: PAGE_TEXT if slot[0] != PAGE_TEXT else quoted(page_text), prompt)
