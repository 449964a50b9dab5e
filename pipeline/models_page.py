"""Writes the tables of docs/models.md from the registry: `python -m pipeline.models_page docs/models.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.models.registry import load_spec, model_types
from pipeline.models.spec import ModelSpec
from pipeline.models_command import proof

BEGIN = "<!-- from here on: python -m pipeline.models_page docs/models.md -->"


def page_with_tables(page: str) -> str:
    """The page with its part behind `BEGIN` made anew; what stands before it is written by hand."""
    by_hand, mark, _ = page.partition(BEGIN)
    if not mark:
        raise ValueError(f"the page lacks the line {BEGIN}")
    specs = {name: load_spec(name) for name in model_types()}
    return by_hand + BEGIN + "\n\n" + "\n".join([*_all(specs), "", *_deviations(specs)]) + "\n"


def _all(specs: dict[str, ModelSpec]) -> list[str]:
    named = [spec for spec in specs.values() if spec.repository]
    proven = sum(spec.proven is not None for spec in named)
    lines = [
        "## All model types",
        "",
        f"{len(named)} types and `auto`; {proven} of the types ran on vLLM's engine.",
        "",
        "| type | repository | takes | needs | shown |",
        "|---|---|---|---|---|",
    ]
    for name, spec in specs.items():
        needs = [*spec.requires]
        if spec.trust_remote_code:
            needs.append("remote code")
        if gpus := spec.engine_args.get("tensor_parallel_size"):
            needs += [f"{gpus} GPUs"] if gpus > 1 else []
        if spec.ignores_question:
            needs.append("no question")
        where = f"`{spec.repository}`" if spec.repository else "any, by `model.path`"
        taken = ", ".join(spec.modalities)
        lines.append(f"| `{name}` | {where} | {taken} | {', '.join(needs)} | {proof(spec)} |")
    return lines


def _deviations(specs: dict[str, ModelSpec]) -> list[str]:
    lines = [
        "## Where vLLM's own example is wrong",
        "",
        "These prompts and repositories differ from those of vLLM's vision-language example; all others are "
        "the same, byte for byte.",
        "",
        "| type | in the example | here | why |",
        "|---|---|---|---|",
    ]
    for name, spec in specs.items():
        if spec.seed_repository:
            lines.append(f"| `{name}` | `{spec.seed_repository}` | `{spec.repository}` | {_cell(spec.notes)} |")
        if spec.seed_prompt:
            modality, wrong = next(iter(spec.seed_prompt.items()))
            others = list(spec.seed_prompt)[1:]
            also = f" (and {', '.join(others)})" if others else ""
            right = spec.prompt.template or spec.prompt.chat or ""
            lines.append(
                f"| `{name}` | {modality}{also}: {_code(wrong)} | {_code(right)} | {_cell(spec.notes)} |"
            )
    return lines


def _code(text: str) -> str:
    return f"<code>{_cell(text)}</code>"


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;").replace("\n", "\\n")
    return escaped.replace("`", "")


def main(path: str) -> None:
    """Rewrites the page at the path."""
    page = Path(path)
    page.write_text(page_with_tables(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
