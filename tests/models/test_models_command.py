"""`framescribe models`: a table, one model in full, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.models.registry import model_types


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["models", *arguments]) == 0
    return capsys.readouterr().out


def test_the_table_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys).splitlines()
    assert [line.split()[0] for line in lines] == model_types()
    assert len(lines) == 71
    (fuyu,) = [line for line in lines if line.startswith("fuyu ")]
    assert "needs vLLM <= 0.25" in fuyu


def test_one_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "kimi_k25", "--question", "Wozu?")
    assert "moonshotai/Kimi-K2.5" in text
    assert "vllm>=0.25, model.trust_remote_code=true and a pinned model.revision" in text
    assert "vision_chunk   '<|im_user|>user<|im_middle|><|media_begin|>image" in text
    assert "<|media_end|>Wozu?<|im_end|>" in text
    assert "seed's vision_chunk '<|im_user|>user<|media_begin|>" in text


def test_json_has_everything_resolved(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "qwen3_vl", "--json", "--question", "Why?"))
    assert set(found) == {"modalities", "example_engine_args"}
    assert list(found["modalities"]) == ["image", "video", "image+video"]
    assert found["modalities"]["image+video"] == {
        "engine_args": {
            "model": "Qwen/Qwen3-VL-4B-Instruct",
            "mm_processor_kwargs": {"min_pixels": 784, "max_pixels": 1003520, "fps": 1},
            "limit_mm_per_prompt": {"image": 1, "video": 1, "audio": 0, "vision_chunk": 0},
        },
        "prompt": "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        "<|vision_start|><|image_pad|><|vision_end|><|vision_start|><|video_pad|><|vision_end|>"
        "Why?<|im_end|>\n<|im_start|>assistant\n",
        "stop_token_ids": [],
        "stop_tokens": [],
        "sampling_params": {},
        "lora_requests": [],
    }


def test_json_of_a_chat_template_and_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "lfm2_vl", "--json", "--question", "Why?"))["modalities"]["image"]
    assert "prompt" not in found
    assert found["chat_messages"] == [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}
    ]
    assert list(json.loads(shown(capsys, "--json"))) == model_types()


def test_a_spec_by_path_and_an_unknown_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "repository: a/b\nmedia: {image: {placeholder: <i>}}\nprompt: {template: '{media} {question}'}\n"
    )
    assert (
        json.loads(shown(capsys, str(file), "--json", "--question", "Q"))["modalities"]["image"]["prompt"]
        == "<i> Q"
    )
    assert main(["models", "qwen3_vll"]) == 2
    assert "did you mean qwen3_vl" in capsys.readouterr().err
