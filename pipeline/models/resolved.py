"""A spec as it would be used: engine arguments, prompt and the rest for each modality, as plain values."""

from __future__ import annotations

from typing import Any

from pipeline.models.prompt import chat_messages, filled
from pipeline.models.spec import MODALITIES, Kind, ModelSpec

EXAMPLE_QUESTION = "What is in this picture?"


def resolved(spec: ModelSpec, question: str) -> dict[str, Any]:
    """What a request of each modality would be made of, with one media of each of its kinds.

    A prompt that the model's chat template makes is shown as the messages that the template gets.
    """
    modalities: dict[str, dict[str, Any]] = {}
    for item in spec.modalities:
        kinds: list[Kind] = [kind for kind in spec.media if kind in item.split("+")]
        counts = dict.fromkeys(kinds, 1)
        names = [spec.modality(kind) for kind in kinds]
        limits = {**dict.fromkeys(MODALITIES, 0), **dict.fromkeys(names, 1)}
        prompt: dict[str, Any] = (
            {"prompt": filled(spec, question, counts)}
            if spec.prompt.chat is None
            else {"chat_messages": chat_messages(spec, question, counts)}
        )
        modalities["+".join(names)] = {
            "engine_args": {**_model(spec), **spec.engine_args, "limit_mm_per_prompt": limits},
            **prompt,
            "stop_token_ids": spec.stop_token_ids,
            "stop_tokens": spec.stop_tokens,
            "sampling_params": spec.sampling,
            "lora_requests": lora_requests(spec, spec.repository or ""),
        }
    return {"modalities": modalities, "example_engine_args": spec.example_engine_args}


def _model(spec: ModelSpec) -> dict[str, Any]:
    model: dict[str, Any] = {"model": spec.repository, "revision": spec.revision}
    model["trust_remote_code"] = spec.trust_remote_code or None
    return {name: value for name, value in model.items() if value is not None}


def lora_requests(spec: ModelSpec, model: str) -> list[dict[str, Any]]:
    """The fields of vLLM's LoRARequest, for a model whose files are in the folder (or repository) `model`."""
    if spec.lora is None:
        return []
    path = f"{model.rstrip('/')}/{spec.lora.path}"
    return [{"lora_name": spec.lora.name, "lora_int_id": spec.lora.id, "lora_path": path}]
