"""Every spec against vLLM's own vision-language example (the seed), read independently of the specs.

116 model x modality cases: each is equal, or its spec has the seed's prompt or repository beside its own
(`seed_prompt`, `seed_repository`), with the reason in `notes`, and is listed here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.models.registry import load_spec, model_types
from pipeline.models.resolved import resolved
from tests.models.seed_dump import (
    CASES,
    QUESTION,
    SECOND_SEED,
    SEED,
    metadata_and_graph_lists,
    second_seed_engine_args,
    seed_cases,
)

SAID: dict[str, dict[str, dict[str, Any]]] = json.loads(CASES.read_text("utf-8"))
PAIRS = [(name, modality) for name, cases in SAID.items() for modality in cases]

WRONG_PROMPTS = {
    *((name, modality) for name in ("glm4_1v", "glm4_5v", "glm4_5v_fp8", "glm_ocr")
      for modality in ("image", "video", "image+video")),
    ("gemma4", "image"), ("gemma4", "video"),
    ("kimi_k25", "vision_chunk"), ("molmo", "image"), ("openpangu_vl", "image+video"),
}  # fmt: skip
WRONG_REPOSITORIES = {"keye_vl1_5", "lightonocr"}


@pytest.mark.skipif(not SEED.is_file(), reason=f"{SEED} is not here")
def test_the_kept_reading_is_what_the_seed_says() -> None:
    assert seed_cases() == SAID


def test_there_are_116_cases() -> None:
    found = [modality for _, modality in PAIRS]
    counts = {modality: found.count(modality) for modality in set(found)}
    assert counts == {"image": 65, "video": 26, "image+video": 24, "vision_chunk": 1}
    assert len(SAID) == 67
    assert set(SAID) | {"chameleon", "florence2", "fuyu", "auto"} >= set(model_types()) >= set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_the_modalities_are_the_seeds(name: str) -> None:
    assert set(resolved(load_spec(name), QUESTION)["modalities"]) == set(SAID[name])


@pytest.mark.parametrize(("name", "modality"), PAIRS)
def test_the_spec_says_what_the_seed_says(name: str, modality: str) -> None:
    spec, said = load_spec(name), dict(SAID[name][modality])
    used = resolved(spec, QUESTION)["modalities"][modality]
    # The example's sizes are shown, not applied: what the seed says is in the one or in the other.
    assert not used["engine_args"].keys() & spec.example_engine_args.keys()
    used["engine_args"] |= spec.example_engine_args
    via = said.pop("via", None)
    if via is not None:
        assert spec.prompt.processor == (via == "processor")
    if (name, modality) in WRONG_PROMPTS:
        assert said["prompt"] != used["prompt"]
        assert said.pop("prompt") == spec.seed_prompt[modality].replace("{question}", QUESTION)
        del used["prompt"]
    if name in WRONG_REPOSITORIES:
        assert said["engine_args"]["model"] == spec.seed_repository
        used["engine_args"]["model"] = spec.seed_repository
    assert used == said


def test_deviations_are_those_listed_and_say_why() -> None:
    specs = {name: load_spec(name) for name in model_types()}
    assert {(name, kind) for name, spec in specs.items() for kind in spec.seed_prompt} == WRONG_PROMPTS
    assert {name for name, spec in specs.items() if spec.seed_repository} == WRONG_REPOSITORIES
    for name in WRONG_REPOSITORIES | {name for name, _ in WRONG_PROMPTS}:
        assert len(specs[name].notes) > 50


def rightly(name: str, modality: str, wrong: str) -> str:
    """The prompt that should have been, from the wrong one, by as little as possible."""
    if name.startswith("glm"):
        return wrong.replace("<|assistant|>assistant\n", "<|assistant|>\n")
    if name == "gemma4":
        return wrong.replace("<start_of_turn>", "<|turn>").replace("<end_of_turn>", "<turn|>")
    if name == "kimi_k25":
        return wrong.replace("<|im_user|>user", "<|im_user|>user<|im_middle|>")
    if name == "openpangu_vl":
        return wrong.replace("[unused19][unused32]", "[unused19][unused20][unused18][unused32]")
    assert name == "molmo"
    return f"User: {QUESTION} Assistant:"


@pytest.mark.parametrize(("name", "modality"), sorted(WRONG_PROMPTS))
def test_a_right_prompt_differs_in_what_was_wrong_only(name: str, modality: str) -> None:
    used = resolved(load_spec(name), QUESTION)["modalities"][modality]["prompt"]
    assert used == rightly(name, modality, SAID[name][modality]["prompt"])


@pytest.mark.parametrize("name", SAID)
def test_any_changed_character_of_a_prompt_is_noticed(name: str) -> None:
    spec = load_spec(name)
    field = "template" if spec.prompt.template is not None else "chat"
    form = spec.prompt.template or spec.prompt.chat or ""
    slots = [form.index("{media}") + i for i in range(7)]
    if "{question}" in form:
        slots += [form.index("{question}") + i for i in range(10)]
    (modality, said), *_ = SAID[name].items()
    words = "prompt" if "prompt" in said else "chat_messages"
    right = said[words]
    if (name, modality) in WRONG_PROMPTS:
        right = rightly(name, modality, right)
    for place in sorted({*range(len(form))} - {*slots}):
        changed = form[:place] + "~" + form[place + 1 :]
        prompt = spec.prompt.model_copy(update={field: changed})
        found = resolved(spec.model_copy(update={"prompt": prompt}), QUESTION)["modalities"][modality]
        assert found[words] != right, changed


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("chameleon", f"{QUESTION}<image>"),
        ("florence2", "<MORE_DETAILED_CAPTION>"),
        ("fuyu", f"{QUESTION}\n"),
    ],
)
def test_the_three_of_the_second_seed(name: str, prompt: str) -> None:
    # That copy lost all that stands in angle brackets, so only the engine arguments can be read from it.
    spec = load_spec(name)
    used = resolved(spec, QUESTION)["modalities"]["image"]
    assert used["prompt"] == prompt
    if SECOND_SEED.is_file():
        del used["engine_args"]["limit_mm_per_prompt"]
        assert used["engine_args"] | spec.example_engine_args == second_seed_engine_args(name)


@pytest.mark.skipif(not SEED.is_file(), reason=f"{SEED} is not here")
def test_metadata_and_cuda_graphs_are_at_least_the_seeds() -> None:
    needing, with_graphs = metadata_and_graph_lists()
    ours = {
        name for name in model_types() if (video := load_spec(name).media.get("video")) and video.needs_metadata
    }
    # `auto` always sends them. The rest vLLM demands them of, which the seed's list lacks.
    assert ours - {"auto"} == {*needing, "ernie45_vl", "gemma4", "interns1_pro", "openpangu_vl"}
    dead = {"minicpmv2_5_vl", "minicpmv2_6_vl", "minicpmv4_vl"}
    assert set(with_graphs) - dead <= {name for name in model_types() if load_spec(name).vit_cuda_graph}
    assert not dead & set(model_types())
