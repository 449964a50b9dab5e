"""What is asked: the item's own question, or the prompt with the page's text."""

from __future__ import annotations

import pytest

from pipeline.models.question import asked, wants_page_text


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Read this. Its text: {page_text}", "Read this. Its text: TEXT"),
        ('Answer {"a": {}, "b": {page}} only', 'Answer {"a": {}, "b": {page}} only'),
        ("{page_text}\n{page_text}", "TEXT\nTEXT"),
        ("write {{page_text}} for it", "write {page_text} for it"),
        ("{ page_text } {question} {0} %s $x", "{ page_text } {question} {0} %s $x"),
    ],
)
def test_only_the_place_of_the_text_means_anything(prompt: str, said: str) -> None:
    assert asked(None, prompt, "TEXT") == said
    assert wants_page_text([prompt]) == ("TEXT" in said)


def test_an_own_question_is_asked_as_it_is() -> None:
    assert asked("Who wrote {page_text}?", "Read {page_text}", "TEXT") == "Who wrote {page_text}?"


def test_a_text_with_places_in_it_is_not_filled_in_again() -> None:
    assert asked(None, "[{page_text}]", "{page_text} {{page_text}} \\1") == "[{page_text} {{page_text}} \\1]"


def test_only_words_of_others_are_quoted() -> None:
    assert asked(None, "<s>{page_text}", "<s>", lambda text: text.replace("<", "< ")) == "<s>< s>"
    assert asked("<s>", "", "", lambda text: text.replace("<", "< ")) == "< s>"
