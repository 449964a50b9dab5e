"""An engine that computes nothing: to try a pipeline, and to measure what it costs by itself."""

from __future__ import annotations

from pipeline.engine.base import Answer, Request


class EchoEngine:
    """Answers each request with its media's UUIDs and its prompt, at once."""

    async def generate(self, request: Request) -> Answer:
        """The UUIDs of the media as they were packed, and the prompt."""
        uuids = [uuid for some in request.prompt["multi_modal_uuids"].values() for uuid in some]
        text = f"{' '.join(uuids)} {request.prompt['prompt']}"
        return Answer(text, "stop", 0, 0)

    def close(self) -> None:
        """Nothing is held."""
