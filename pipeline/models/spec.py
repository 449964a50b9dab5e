"""The schema of `conf/models/*.yaml`: all that is known about one model type."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["image", "video"]


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

    `placeholder` is written once for each; `token` is the part of it that vLLM looks for (default: the
    whole). `needs_metadata`: vLLM refuses a video without its metadata.
    """

    placeholder: str = Field(min_length=1)
    token: str | None = None
    shrink: ShrinkSpec = ShrinkSpec()
    needs_metadata: bool = False

    @model_validator(mode="after")
    def _token_in_placeholder(self) -> MediaSpec:
        if self.placeholder.count(self.marker) != 1:
            raise ValueError(f"placeholder {self.placeholder!r} must have the token {self.marker!r} once")
        return self

    @property
    def marker(self) -> str:
        """What is counted in a finished prompt to count its media."""
        return self.token or self.placeholder


class PromptSpec(_Part):
    """The words around the media: either a whole `template`, or the user's turn of the chat template.

    In both, `{media}` stands for the placeholders of the item's media and `{question}` for its question.
    """

    template: str | None = None
    chat: str | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> PromptSpec:
        text = self.template if self.template is not None else self.chat
        if text is None or (self.template is not None and self.chat is not None):
            raise ValueError("set either `template` or `chat`")
        if text.count("{media}") != 1 or text.count("{question}") > 1:
            raise ValueError("write {media} once, and {question} once (or not at all, if it is ignored)")
        return self


class ModelSpec(_Part):
    """One model type.

    Attributes:
        repository: the hub name that `model.path` replaces.
        revision: the commit to load; None is the newest.
        trust_remote_code: the repository's own Python must run; a run has to grant it.
        engine_args: vLLM engine arguments that every run of this model needs.
        example_engine_args: sizes that its example was tried with; shown, not applied.
        media: the kinds of media that it takes.
        mixed: whether one prompt may hold images and a video together.
        separator: between the placeholders of one item.
        stop_tokens, stop_token_ids: where an answer ends, besides the model's end of text; tokens that
            its tokenizer lacks are left out.
        sampling: vLLM SamplingParams fields that a run's own override.
    """

    repository: str
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
    notes: str = ""

    @property
    def modalities(self) -> list[str]:
        """What one item may bring: `image`, `video`, `image+video`."""
        return [*self.media, *(["image+video"] if self.mixed else [])]
