"""The schema of `conf/models/*.yaml`: all that is known about one model type."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["image", "video"]
"""What an item may bring."""

MODALITIES = ("image", "video", "audio", "vision_chunk")
"""What vLLM may be given; each that a run does not use is limited to 0, so that no memory is kept for it."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShrinkSpec(_Part):
    """The largest picture that the model can tell from a larger one: bigger ones are shrunk to it.

    Pixels for `max_pixels` (area), `max_side` (longer side); `min_side` is kept for models that resize
    the shorter side.
    """

    max_pixels: int | None = None
    max_side: int | None = None
    min_side: int | None = None


class MediaSpec(_Part):
    """How one kind of media stands in the prompt.

    Attributes:
        placeholder: written once for each; `{n}` in it is the number of the media, from 1. None where vLLM
            itself or the chat template puts it in.
        token: the part of it that vLLM looks for (default: the whole).
        modality: what vLLM calls it, where that is another name.
        most: how many of them vLLM takes in one prompt; None: no bound.
        needs_metadata: vLLM refuses a video without its metadata.
    """

    placeholder: str | None = Field(default=None, min_length=1)
    token: str | None = Field(default=None, min_length=1)
    modality: str | None = None
    most: int | None = Field(default=None, gt=0)
    shrink: ShrinkSpec = ShrinkSpec()
    needs_metadata: bool = False

    @model_validator(mode="after")
    def _token_in_placeholder(self) -> MediaSpec:
        if self.placeholder and self.placeholder.count(self.marker or "") != 1:
            raise ValueError(f"placeholder {self.placeholder!r} must have the token {self.marker!r} once")
        return self

    @property
    def marker(self) -> str | None:
        """What is counted in a finished prompt to count its media; None where the tokenizer must tell."""
        return self.token or self.placeholder

    def markers_in(self, text: str) -> int:
        """How many media of this kind a prompt has."""
        pattern = re.escape(self.marker or "").replace(re.escape("{n}"), r"\d+")
        return len(re.findall(pattern, text)) if pattern else 0


class PromptSpec(_Part):
    """The words around the media: either a whole `template`, or the user's turn of the chat template.

    In both, `{media}` stands for the placeholders of the item's media and `{question}` for its question.

    Attributes:
        parts: the chat template takes typed parts ({type: image}, {type: text}) in place of one text, and
            writes the placeholders itself.
        processor: the chat template is the processor's rather than the tokenizer's.
        system: what the system says, before the user's turn of a chat.
        options: further variables of the chat template (`chat_template_kwargs`).
    """

    template: str | None = None
    chat: str | None = None
    parts: bool = False
    processor: bool = False
    system: str | None = None
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_of_two(self) -> PromptSpec:
        text = self.template if self.template is not None else self.chat
        if text is None or (self.template is not None and self.chat is not None):
            raise ValueError("set either `template` or `chat`")
        if text.count("{media}") != 1 or text.count("{question}") > 1:
            raise ValueError("write {media} once, and {question} once (or not at all, if it is ignored)")
        if self.chat is None and (self.parts or self.processor or self.system or self.options):
            raise ValueError("parts, processor, system and options go with `chat`")
        return self


class LoraSpec(_Part):
    """An adapter that every request uses: `path` is a folder of the model's own repository."""

    name: str
    id: int = Field(default=1, gt=0)
    path: str


class VersionSpec(_Part):
    """The vLLM versions that run the model, as far as their given digits: `max: "0.28"` takes in 0.28.1."""

    min: str | None = None
    max: str | None = None


class ModelSpec(_Part):
    """One model type.

    Attributes:
        repository: the hub name that `model.path` replaces; None: `model.path` must be set.
        revision: the commit to load; None is the newest.
        trust_remote_code: the repository's own Python must run; a run has to grant it.
        engine_args: vLLM engine arguments that every run of this model needs.
        example_engine_args: sizes that its example was tried with; shown, not applied.
        media: the kinds of media that it takes.
        mixed: whether one prompt may hold images and a video together.
        separator: between the placeholders of one item.
        stop_tokens, stop_token_ids: where an answer ends, besides the model's end of text; tokens that
            its tokenizer lacks are left out. `{eos}` is the tokenizer's own end of text.
        sampling: vLLM SamplingParams fields that a run's own override.
        lora: the adapter that its requests need.
        vit_cuda_graph: vLLM can capture its vision encoder in CUDA graphs.
        vllm: which versions of vLLM run it.
        requires: other packages that it needs, as pip writes them.
        proven: the vLLM version on whose engine `make prove-models` ran it; None: only held against the seed.
        notes: what to know, and why and by which source something here is not as in vLLM's example.
        seed_prompt, seed_repository: what vLLM's example says instead, for each modality.
    """

    repository: str | None
    revision: str | None = None
    trust_remote_code: bool = False
    engine_args: dict[str, Any] = {}
    example_engine_args: dict[str, Any] = {}
    media: dict[Kind, MediaSpec] = Field(min_length=1)
    mixed: bool = False
    separator: str = ""
    prompt: PromptSpec
    stop_tokens: list[str] = []
    stop_token_ids: list[int] = []
    sampling: dict[str, Any] = {}
    lora: LoraSpec | None = None
    vit_cuda_graph: bool = False
    vllm: VersionSpec = VersionSpec()
    requires: list[str] = []
    proven: str | None = None
    notes: str = ""
    seed_prompt: dict[str, str] = {}
    seed_repository: str | None = None

    @property
    def modalities(self) -> list[str]:
        """What one item may bring: `image`, `video`, `image+video`."""
        return [*self.media, *(["image+video"] if self.mixed else [])]

    @property
    def ignores_question(self) -> bool:
        """Whether its prompt is the same whatever is asked."""
        return "{question}" not in (self.prompt.template or self.prompt.chat or "")

    def modality(self, kind: Kind) -> str:
        """vLLM's name of a kind of media."""
        return self.media[kind].modality or kind
