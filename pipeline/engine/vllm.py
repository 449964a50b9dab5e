"""Hosts vLLM's AsyncLLM, set for throughput."""

from __future__ import annotations

import os
import re
from typing import Any

from pipeline.engine.base import Answer, Request
from pipeline.engine.causes import root_cause
from pipeline.engine.environment import LEAN, SPAWN, started_with
from pipeline.engine.figures import EngineFigures
from pipeline.engine.hints import start_hint
from pipeline.engine.last_words import LastWords
from pipeline.engine.rendering import RenderingError, RenderPool
from pipeline.errors import Code, EngineError, ItemError

_TOO_LONG = re.compile(
    r"longer than the maximum model length|maximum context length|exceeds the pre-allocated encoder cache",
    re.IGNORECASE,
)
_NO_METADATA = re.compile(r"video metadata is required", re.IGNORECASE)
_TOO_MANY = re.compile(r"At most \d+ \w+\(s\) may be provided", re.IGNORECASE)


class VllmEngine:
    """One AsyncLLM with `engine_args` as given, over batch defaults.

    `UsageContext.LLM_CLASS` makes vLLM plan for a batch job (16,384 tokens a step, 1,024 sequences)
    where its default plans for a server (2,048); only final answers leave the engine. `render_workers`
    processes render requests (`engine.rendering`); with 0 the engine does it itself. Their tensors go to
    vLLM's core through its socket, or `by_file` (`engine.handover`), where that can be. `lora` has the fields
    of the LoRARequest that goes with every request. `figures` are added to at each step.

    Raises:
        EngineError: with vLLM's own reason, if it cannot start.
    """

    def __init__(
        self,
        engine_args: dict[str, Any],
        render_workers: int = 0,
        lora: dict[str, Any] | None = None,
        figures: EngineFigures | None = None,
        by_file: bool = False,
    ) -> None:
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        from vllm import AsyncEngineArgs
        from vllm.lora.request import LoRARequest
        from vllm.usage.usage_lib import UsageContext

        from pipeline.engine.releasing import ReleasingLLM
        from pipeline.engine.vllm_figures import stat_logger

        self._lora = LoRARequest(**lora) if lora else None
        arguments = {"disable_log_stats": True, **engine_args}
        self._pool = None
        environment: dict[str, str] = {}
        if render_workers:
            # Its processor cache lives in one process, and would take another's tensors for cached ones.
            arguments["mm_processor_cache_gb"] = 0
            self._pool = RenderPool(arguments, render_workers, by_file)
            environment = LEAN
            if by_file:
                arguments["mm_tensor_ipc"] = "torch_shm"
                environment = LEAN | SPAWN
        self._last_words = LastWords()
        try:
            with self._last_words.heard(), started_with(environment):
                self._engine = ReleasingLLM.from_engine_args(
                    AsyncEngineArgs(**arguments),
                    usage_context=UsageContext.LLM_CLASS,
                    stat_loggers=[stat_logger(figures or EngineFigures())],
                )
        except Exception as error:
            if self._pool:
                self._pool.close()
            raise EngineError(_why_not_started(error, self._last_words, arguments)) from error
        self._last_words.forget()

    async def render(self, prompt: dict[str, Any]) -> Any:
        """The request as vLLM's core takes it; as it is if it is that already, or if the engine renders itself.

        Raises:
            RenderingError, EngineError: see `RenderPool.render`.
        """
        return prompt if self._pool is None or "type" in prompt else await self._pool.render(prompt)

    async def generate(self, request: Request) -> Answer:
        """Answer one request; see `Engine.generate`."""
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        try:
            final = None
            prompt = await self.render(request.prompt)
            sampling = _sampling_params(request.sampling)
            async for output in self._engine.generate(prompt, sampling, request.id, lora_request=self._lora):
                final = output
        except EngineDeadError as error:
            reason = self._last_words.reason()
            raise EngineError(f"the vLLM engine died{f' of {reason}' if reason else ''}") from error
        except EngineGenerateError as error:
            reason = root_cause(error)
            raise ItemError(_code_of(reason), f"vLLM: {reason}") from error
        except RenderingError as error:
            raise ItemError(_code_of(str(error)), f"vLLM: {error}") from error
        except _client_errors() as error:
            raise ItemError(_code_of(str(error)), f"vLLM: {error}") from error
        if final is None:
            raise ItemError(Code.ENGINE_FAILED, "vLLM ended the request without an answer")
        output = final.outputs[0]
        return Answer(
            text=output.text,
            finish_reason=output.finish_reason or "",
            prompt_tokens=len(final.prompt_token_ids or ()),
            output_tokens=len(output.token_ids),
        )

    def close(self) -> None:
        """Stop the engine's processes and free its memory.

        Call it in the event loop that it answered in: elsewhere vLLM leaves sockets open, and the garbage
        collector waits for them for ever.
        """
        self._engine.shutdown()
        if self._pool:
            self._pool.close()


def _sampling_params(fields: dict[str, Any]) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(**fields, output_kind=RequestOutputKind.FINAL_ONLY)


def _client_errors() -> tuple[type[Exception], ...]:
    from vllm import exceptions

    # vLLM 0.25 has VLLMValidationError as a ValueError; later versions have a base class for all of them.
    return (getattr(exceptions, "VLLMClientError", exceptions.VLLMValidationError), ValueError)


def _why_not_started(error: BaseException, last_words: LastWords, arguments: dict[str, Any]) -> str:
    told = root_cause(error)
    if "See root cause above" in told or "Engine core initialization failed" in told:
        # vLLM's own words for a failure in another process, whose reason is on its stderr only.
        told = last_words.reason() or told
    return f"vLLM cannot start: {told}{start_hint(told, arguments)}"


def _code_of(message: str) -> Code:
    if _TOO_LONG.search(message):
        return Code.PROMPT_TOO_LONG
    if _NO_METADATA.search(message):
        return Code.MISSING_METADATA
    return Code.TOO_MANY_MEDIA if _TOO_MANY.search(message) else Code.REQUEST_REJECTED
