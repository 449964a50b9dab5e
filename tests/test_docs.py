"""The documentation names everything that there is, and nothing that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from pipeline.config import RunConfig
from pipeline.errors import Code
from pipeline.results.schema import RESERVED
from tests.conftest import REPOSITORY


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and name != "replicas":
            yield from fields(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_every_field_of_the_configuration_is_documented() -> None:
    text = (REPOSITORY / "docs/configuration.md").read_text("utf-8")
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`([a-z0-9_.]+)`", cell)]
    told = {name if not name.startswith(".") else f"storage.s3{name}" for name in named}
    assert told == set(fields(RunConfig))


def test_every_code_and_column_is_documented() -> None:
    text = (REPOSITORY / "docs/results.md").read_text("utf-8")
    columns, rest = text.split("## Failure codes")
    codes = rest.partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", codes, re.MULTILINE)) == {code.value for code in Code}
    retryable = set(re.findall(r"^\| `(\w+)` ↻", codes, re.MULTILINE))
    assert retryable == {code.value for code in Code if code.retryable}
    table = [line for line in codes.splitlines() if line.startswith("|")]
    assert [line for line in table if not line.split("|")[3].strip()] == []
    cells = [line.split("|")[1] for line in columns.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == RESERVED - {"recipe"}


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    for page in [
        REPOSITORY / "README.md",
        *REPOSITORY.glob("*/README.md"),
        *(REPOSITORY / "docs").glob("*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
