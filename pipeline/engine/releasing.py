"""vLLM's AsyncLLM, letting go of rendered requests once its core has them."""

from __future__ import annotations

from typing import Any

from vllm.v1.engine.async_llm import AsyncLLM


class ReleasingLLM(AsyncLLM):  # type: ignore[misc]
    """`generate` keeps its prompt until the answer is there: some 10 MB of tensors for each image in hand."""

    async def add_request(self, request_id: str, prompt: Any, *others: Any, **named: Any) -> Any:
        """As AsyncLLM's. A rendered prompt (vLLM's EngineInput, a dict with a `type`) is empty afterwards."""
        collector = await super().add_request(request_id, prompt, *others, **named)
        if isinstance(prompt, dict) and "type" in prompt:
            prompt.clear()
        return collector
