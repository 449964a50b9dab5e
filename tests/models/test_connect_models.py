"""What an actor makes of a spec: tokenizer or processor, stop tokens, the adapter's path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.config import RunConfig
from pipeline.engine import handover, vllm
from pipeline.engine.arguments import engine_arguments
from pipeline.errors import EngineError
from pipeline.models.registry import load_spec, registry_folder
from pipeline.stages.connect import Connect, load_tokenizer
from pipeline.storage import Storage
from tests.tiny import tiny_model


def connect(spec_name: str, model: Path, kind: str = "vllm") -> Connect:
    spec = load_spec(spec_name)
    run = {"manifest": {"uri": "m"}, "model": {"type": spec_name}, "prompt": "p", "output": {"uri": "o"}}
    arguments = engine_arguments(RunConfig.model_validate(run), spec, frozenset(spec.media))
    return Connect(kind, spec, Storage(), str(model), str(model), arguments, spec.sampling, {})


def test_the_adapter_is_in_the_models_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(vllm, "VllmEngine", lambda *given, **_: asked.append(given))
    model = tiny_model("llava")
    connect("phi4_mm", model)().engine()
    (arguments, _, lora, _) = asked[0]
    assert arguments["model"] == str(model)
    assert (arguments["enable_lora"], arguments["max_lora_rank"]) == (True, 320)
    assert lora == {"lora_name": "vision", "lora_int_id": 1, "lora_path": f"{model}/vision-lora"}
    connect("llava", model)().engine()
    assert asked[1][2] is None


@pytest.mark.parametrize(
    ("memory", "tensor_parallel_size", "by_file"),
    [
        (16 * 2**30, 1, True),  # four times the 4 GiB of decoded pixels
        (16 * 2**30 - 1, 1, False),
        (64 * 2**30, 2, False),  # vLLM's queue has one end
    ],
)
def test_tensors_go_by_file_where_shared_memory_holds_all_that_are_in_flight(
    monkeypatch: pytest.MonkeyPatch, memory: int, tensor_parallel_size: int, by_file: bool
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(vllm, "VllmEngine", lambda *_, **named: asked.append(named))
    monkeypatch.setattr(handover, "shared_memory", lambda: memory)
    connection = connect("llava", tiny_model("llava"))
    arguments = {**connection.arguments, "tensor_parallel_size": tensor_parallel_size}
    replace(connection, arguments=arguments)().engine()
    assert asked == [{"by_file": by_file}]


def test_the_processors_template_is_used_where_the_spec_says_so() -> None:
    started = connect("lfm2_vl", tiny_model("lfm2_vl"), "echo")()
    prompt = started.builder.build("Q", {"image": 1})
    assert prompt == "<|im_start|>user\n<image>Q<|im_end|>\n<|im_start|>assistant\n"


def test_the_tokenizers_end_of_text_is_a_stop_token() -> None:
    model = tiny_model("h2ovl_chat")
    tokenizer = load_tokenizer(str(model), {"trust_remote_code": True})
    (stop,) = connect("h2ovl_chat", model)().sampling["stop_token_ids"]
    assert stop == tokenizer.get_vocab()["<|im_end|>"]


def test_a_model_whose_template_knows_no_images_ends_the_actor_with_its_reason(tmp_path: Path) -> None:
    # Its template takes one text.
    with pytest.raises(EngineError, match="writes nothing for an image"):
        connect("auto", tiny_model("qwen3_vl"), "echo")()
    spec = yaml.safe_load((registry_folder() / "qwen3_vl.yaml").read_text("utf-8"))
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    assert connect(str(tmp_path / "mine.yaml"), tiny_model("qwen3_vl"), "echo")().builder.tokenizer is None
