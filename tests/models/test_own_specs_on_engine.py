"""Models that no file of conf/models names, on vLLM's real engine: `auto`, and specs of one's own by path."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
import yaml
from safetensors.torch import save_file

from pipeline.models.registry import registry_folder
from tests.models.test_specs_on_engine import CASES
from tests.models.tiny_engine import Reply, ask
from tests.tiny import tiny_model
from tests.tiny.layout import HIDDEN

# As the chat template of Qwen2.5-VL, as far as it is used.
PARTS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ opening | default('') }}{% endif %}"
)


def replies(pool: ProcessPoolExecutor, spec: str, model: Path, *cases: str) -> list[Reply]:
    files = [CASES[case]() for case in cases]
    return pool.submit(ask, spec, model, "What is it?", files).result().replies


def own_spec(folder: Path, base: str, **changed: object) -> str:
    """A copy of a spec with some fields changed, as a user would write it."""
    spec = yaml.safe_load((registry_folder() / f"{base}.yaml").read_text("utf-8"))
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**spec, **changed}), "utf-8")
    return str(path)


def test_any_model_by_its_own_chat_template(tmp_path: Path, vllm_process: ProcessPoolExecutor) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model("qwen2_5_vl"), model)
    (model / "chat_template.jinja").write_text(PARTS, "utf-8")
    image, two, video, both = replies(
        vllm_process, "auto", model, "image", "two images", "video", "image+video"
    )
    expected = [{"<|image_pad|>": 35}, {"<|image_pad|>": 70}, {"<|video_pad|>": 140}]
    for reply, counts in zip((image, two, video, both), [*expected, expected[0] | expected[2]], strict=True):
        found = {token: n for token, n in reply.special_tokens.items() if token.endswith("_pad|>")}
        assert found == counts
    # One user's turn, and the assistant's begun: two starts and one end.
    assert (image.special_tokens["<|im_start|>"], image.special_tokens["<|im_end|>"]) == (2, 1)


def test_a_spec_of_ones_own_with_a_system_prompt_and_template_options(
    tmp_path: Path, vllm_process: ProcessPoolExecutor
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model("qwen2_5_vl"), model)
    (model / "chat_template.jinja").write_text(PARTS, "utf-8")
    prompt = {
        "chat": "{question}{media}",
        "parts": True,
        "processor": True,
        "system": "Be brief.",
        "options": {"opening": "<|vision_start|>"},
    }
    (reply,) = replies(vllm_process, own_spec(tmp_path, "auto", prompt=prompt), model, "image")
    assert reply.special_tokens["<|im_start|>"] == 3
    assert reply.special_tokens["<|vision_start|>"] == 2
    assert reply.special_tokens["<|image_pad|>"] == 35


def test_a_logits_processor_with_arguments_for_each_request(
    tmp_path: Path, vllm_process: ProcessPoolExecutor
) -> None:
    # DeepSeek-OCR's: no two tokens may follow each other twice.
    ocr = yaml.safe_load((registry_folder() / "deepseek_ocr.yaml").read_text("utf-8"))
    free = own_spec(tmp_path, "llava", sampling={"max_tokens": 60, "ignore_eos": True})
    (without,) = replies(vllm_process, free, tiny_model("llava"), "image")
    arguments = {"ngram_size": 2, "window_size": 100, "whitelist_token_ids": []}
    spec = own_spec(
        tmp_path,
        "llava",
        engine_args=ocr["engine_args"],
        sampling={"max_tokens": 60, "ignore_eos": True, "extra_args": arguments},
    )
    (held,) = replies(vllm_process, spec, tiny_model("llava"), "image")

    def repeated(reply: Reply) -> int:
        pairs = list(zip(reply.tokens, reply.tokens[1:], strict=False))
        return len(pairs) - len(set(pairs))

    assert repeated(without) > 0
    assert repeated(held) == 0


def test_the_adapter_of_the_spec_goes_with_every_request(
    tmp_path: Path, vllm_process: ProcessPoolExecutor
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model("llava"), model)
    adapter = model / "vision-lora"
    adapter.mkdir()
    target = "base_model.model.language_model.model.layers.0.self_attn.q_proj"
    chance = torch.Generator().manual_seed(0)
    weights = {
        f"{target}.lora_A.weight": torch.randn(8, HIDDEN, generator=chance),
        f"{target}.lora_B.weight": torch.randn(HIDDEN, 8, generator=chance),
    }
    save_file(weights, adapter / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    spec = own_spec(
        tmp_path,
        "llava",
        engine_args={"enable_lora": True, "max_lora_rank": 8},
        lora={"name": "vision", "id": 1, "path": "vision-lora"},
    )
    (with_adapter,) = replies(vllm_process, spec, model, "image")
    (without,) = replies(vllm_process, "llava", model, "image")
    assert abs(with_adapter.logprob - without.logprob) > 1e-3
