"""docs/models.md is what the registry says now."""

from __future__ import annotations

import pytest

from pipeline.models.registry import model_types
from pipeline.models_page import BEGIN, page_with_tables
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs/models.md").read_text("utf-8")


def test_the_page_is_current() -> None:
    assert page_with_tables(PAGE) == PAGE, "run: python -m pipeline.models_page docs/models.md"


def test_every_type_has_its_row_and_every_deviation_its_reason() -> None:
    rows = [line.split(" | ") for line in PAGE.partition(BEGIN)[2].splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows][: len(model_types())] == model_types()
    deviations = rows[len(model_types()) :]
    assert {row[0].strip("| `") for row in deviations} == {
        "gemma4", "glm4_1v", "glm4_5v", "glm4_5v_fp8", "glm_ocr", "keye_vl1_5", "kimi_k25", "lightonocr",
        "molmo", "openpangu_vl",
    }  # fmt: skip
    assert all(len(row) == 4 and len(row[3]) > 50 for row in deviations)


def test_what_is_written_by_hand_stays() -> None:
    changed = PAGE.replace("# Models", "# Our models", 1)
    assert page_with_tables(changed).startswith("# Our models")
    with pytest.raises(ValueError, match="lacks the line"):
        page_with_tables("# Models")
