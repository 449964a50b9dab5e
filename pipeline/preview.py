"""The first prompts of a run, exactly as they will be sent."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.engine.weights import locate
from pipeline.errors import ItemError
from pipeline.manifest import read, shards
from pipeline.models.question import PAGE_TEXT, asked
from pipeline.models.spec import Kind
from pipeline.plan import Plan
from pipeline.stages.connect import prompt_builder


@dataclass(frozen=True)
class Preview:
    """One item's prompt for one task, or why it has none."""

    id: str
    task: str
    prompt: str | None
    error: str | None


def first_prompts(plan: Plan, count: int = 3) -> list[Preview]:
    """The prompts of the manifest's first items. Media are not fetched.

    Raises:
        ConfigError, EngineError, OSError: the model's tokenizer is needed and cannot be loaded, or writes no
            prompts.
    """
    chat = plan.spec.prompt.chat is not None
    model = locate(plan.storage, plan.model, plan.model) if chat else None
    treatment = plan.config.manifest.special_tokens
    builder = prompt_builder(plan.spec, model, plan.arguments, treatment)
    shard = shards(plan.manifest, count)[0]
    (table,) = read(plan.storage, plan.manifest, shard, [(shard.start, shard.stop)])
    previews = []
    for item in table.drop_columns(["keep"]).to_pylist():
        counts: dict[Kind, int] = {"image": len(item["images"] or ()), "video": len(item["videos"] or ())}
        for task, words in plan.recipe.tasks.items():
            try:
                # The text of a page is not known before the document is fetched.
                question = asked(item["question"], words, PAGE_TEXT, builder.quoted)
                prompt, error = builder.build(question, counts), item["error"]
            except ItemError as refused:
                prompt, error = None, item["error"] or str(refused)
            previews.append(Preview(item["id"], task, prompt, error))
    return previews
