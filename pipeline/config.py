"""What a run's YAML may say, checked by pydantic: every field, its meaning and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, SecretStr, field_validator, model_validator

PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnsConfig(_Part):
    """Which manifest column plays which role; a role not named here is the column of the role's name.

    But for `document`, `password`, `start` and `end`, which are used only where they are named.
    """

    id: str | None = None
    image: str | None = None
    images: str | None = None
    video: str | None = None
    document: str | None = None
    password: str | None = None
    start: str | None = None
    end: str | None = None
    question: str | None = None


class ManifestConfig(_Part):
    """What to process."""

    uri: str | Annotated[list[str], Field(min_length=1)] = Field(
        description="Parquet, JSONL, CSV, tars, a list of URIs, a folder or glob of them or of media files"
    )
    columns: ColumnsConfig = ColumnsConfig()
    keep: list[str] = Field(default=[], description="columns passed through to the results")
    special_tokens: Literal["text", "refuse"] = Field(
        default="text", description="what the model's special tokens are in a row's own question or page text"
    )
    max_question_chars: PositiveInt = Field(default=32_768, description="of a row's own question")

    @property
    def uris(self) -> list[str]:
        """All that `uri` names."""
        return [self.uri] if isinstance(self.uri, str) else self.uri


class ModelConfig(_Part):
    """Which model answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    type: str = Field(description="a file of conf/models by its name, or the path of such a file")
    path: str | None = Field(
        default=None, description="instead of the spec's repository: folder, hub name, object-store URI"
    )
    revision: str | None = None
    trust_remote_code: bool = Field(
        default=False, description="run the model repository's own Python; needs a pinned `revision`"
    )
    system_prompt: str | None = Field(
        default=None, description="what the system says first, for models with a chat template"
    )
    chat_template_kwargs: dict[str, Any] = Field(default={}, description="variables of the chat template")


class TaskConfig(_Part):
    """One question put to every item."""

    prompt: str = Field(min_length=1, description="asked of an item that brings no question of its own")


class SamplingConfig(BaseModel):
    """How answers are drawn; any other field of vLLM's SamplingParams may stand here too."""

    model_config = ConfigDict(extra="allow", frozen=True)

    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: PositiveInt | None = None
    seed: int | None = None


class VideoConfig(_Part):
    """Which frames of a video the model sees."""

    num_frames: PositiveInt | None = Field(default=None, description="so many, evenly spaced (default 16)")
    fps: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="so many frames a second, at most `max_frames`"
    )
    keyframes: bool = Field(
        default=False, description="instead: the frames that are coded whole, at most `max_frames`"
    )
    max_frames: PositiveInt = 64
    start: Annotated[float, Field(ge=0)] = Field(default=0.0, description="seconds; where the clip begins")
    end: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="seconds; where the clip ends; default: with the file"
    )
    max_pixels: PositiveInt | None = Field(default=None, description="of one frame; default: the model's")
    backend: Literal["auto", "pyav", "decord"] = Field(
        default="auto", description="what decodes; auto: pyav, which is right for more files and as fast"
    )

    @model_validator(mode="after")
    def _one_way(self) -> VideoConfig:
        if (self.num_frames is not None) + (self.fps is not None) + self.keyframes > 1:
            raise ValueError("set one of num_frames, fps and keyframes, not several")
        if self.end is not None and self.end <= self.start:
            raise ValueError(f"end ({self.end:g}) is not after start ({self.start:g})")
        if self.backend == "decord" and (self.keyframes or self.start or self.end):
            raise ValueError(
                "decord takes whole videos by num_frames or fps: for clips and keyframes set backend=pyav"
            )
        return self


class DocumentConfig(_Part):
    """How the pages of documents become rows, pictures and text."""

    dpi: Annotated[float, Field(gt=0, le=2400)] = Field(default=150.0, description="pixels per inch of a page")
    max_side: PositiveInt | None = Field(
        default=None, description="instead of `dpi`: pixels of a page's longer side"
    )
    pages: str | None = Field(default=None, description="the pages that are rows, such as 1-10,15,20-")
    max_pages: PositiveInt = Field(default=10_000, description="of one document; more is a failed item")
    text_chars: PositiveInt = Field(default=4_000, description="the most of a page's text in {page_text}")


class MediaConfig(_Part):
    """How media become pixels."""

    max_pixels: PositiveInt | None = Field(
        default=None, description="of an image as the model sees it; default: the model's own limit"
    )
    video: VideoConfig = VideoConfig()
    document: DocumentConfig = DocumentConfig()
    max_per_item: PositiveInt = Field(default=8, description="images of one item")
    max_bytes: PositiveInt = Field(default=512 * 2**20, description="of one file; more is a failed item")
    max_file_pixels: PositiveInt = Field(
        default=200_000_000, description="of an image or frame in the file, checked before it is decoded"
    )
    damaged: Literal["refuse", "recover"] = Field(
        default="refuse", description="recover: damaged files are accepted where enough of them is whole"
    )
    too_long: Literal["refuse", "shrink"] = Field(
        default="refuse", description="shrink: media of a prompt that does not fit are halved until it does"
    )
    decode_seconds: Annotated[float, Field(gt=0)] = Field(
        default=120.0, description="to decode one file; then it is a failed item"
    )
    decode_memory: PositiveInt = Field(
        default=4 * 2**30, description="bytes of the process that decodes; more is a failed item"
    )


class ReplicasConfig(_Part):
    """How many engines: a fixed number where `min` equals `max`."""

    min: PositiveInt = 1
    max: PositiveInt = 1

    @model_validator(mode="after")
    def _ordered(self) -> ReplicasConfig:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is more than max ({self.max})")
        return self


class EngineConfig(_Part):
    """Who answers, and with how many GPUs. Nothing here changes an answer."""

    kind: Literal["vllm", "echo"] = Field(
        default="vllm", description="`echo` answers each question with itself at once: to try the pipeline"
    )
    device: Literal["auto", "gpu", "cpu"] = Field(
        default="auto", description="auto: cpu where vLLM's CPU build is installed, else gpu"
    )
    tensor_parallel_size: PositiveInt = 1
    replicas: ReplicasConfig = ReplicasConfig()
    batches_in_flight: PositiveInt = Field(default=40, description="per replica, so that it never waits")
    pixels_in_flight: PositiveInt = Field(
        default=4 * 2**30, description="bytes of decoded media that one engine has in hand"
    )
    hang_seconds: Annotated[float, Field(gt=0)] = Field(
        default=600.0, description="without a token of any request; then the engine is replaced"
    )
    render_workers: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="processes that render requests beside each engine; default: by its cores"
    )
    max_restarts: Annotated[int, Field(ge=0)] = Field(
        default=5, description="of one replica's engine before the run is given up"
    )
    args: dict[str, Any] = Field(default={}, description="any vLLM engine argument")
    request_log: str | None = Field(
        default=None, description="folder for one JSON line per request sent to an engine (for audits)"
    )

    @field_validator("replicas", mode="before")
    @classmethod
    def _fixed(cls, value: Any) -> Any:
        return {"min": value, "max": value} if isinstance(value, int) else value


class OutputConfig(_Part):
    """Where results go and in which pieces."""

    uri: str
    shard_rows: PositiveInt = Field(default=4096, description="manifest rows of one result file")
    batch_rows: PositiveInt = Field(default=32, description="rows carried and made durable together")
    accept_truncated: bool = Field(
        default=False, description="an answer cut off at max_tokens counts as ok instead of failed"
    )


class CacheConfig(_Part):
    """Which earlier answers are taken over. Rows of one run that ask the same are always answered once."""

    read: bool = Field(default=True, description="answers of earlier runs of the same recipe in this output")
    outputs: list[str] = Field(default=[], description="other outputs whose answers count too")
    trust_versions: bool = Field(
        default=True,
        description="an object whose URI, size and ETag (or time) are known is not fetched to know its content",
    )


class S3Config(_Part):
    """How s3:// is reached; what is not set comes from the usual AWS environment and files."""

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    anonymous: bool = False
    access_key_id: SecretStr | None = None
    secret_access_key: SecretStr | None = None
    session_token: SecretStr | None = None


class HttpConfig(_Part):
    """How http:// and https:// URLs of a manifest are fetched."""

    allowed_networks: tuple[IPvAnyNetwork, ...] = Field(
        default=(), description="addresses that may be reached though they are not public: 10.1.0.0/16"
    )
    per_host: PositiveInt = Field(default=8, description="requests at once to one host, of one worker")
    max_redirects: Annotated[int, Field(ge=0)] = 5
    user_agent: str = Field(default="framescribe", pattern=r"^[ -~]+$")


class TimeoutConfig(_Part):
    """Seconds that an HTTP(S) or S3 request may take."""

    connect: PositiveFloat = 10.0
    read: PositiveFloat = Field(default=30.0, description="without any byte")
    total: PositiveFloat = Field(default=600.0, description="to fetch one file of a manifest")


class RetryBudget(_Part):
    """How long faults that may pass are met with another try: whichever ends first."""

    attempts: PositiveInt
    seconds: PositiveFloat


class RetryConfig(_Part):
    """`media`: what a manifest names; then the item fails. `run`: the run's own files; then the run stops."""

    media: RetryBudget = RetryBudget(attempts=4, seconds=60)
    run: RetryBudget = RetryBudget(attempts=20, seconds=300)


class StorageConfig(_Part):
    """What a manifest may name, and how stores are reached."""

    s3: S3Config = S3Config()
    http: HttpConfig = HttpConfig()
    timeouts: TimeoutConfig = TimeoutConfig()
    retry: RetryConfig = RetryConfig()
    allowed_schemes: frozenset[str] = frozenset({"file", "s3", "gs", "gcs", "az", "abfs", "https"})
    allowed_roots: list[str] = Field(
        default=[], description="local folders that a manifest may name besides its own"
    )
    fetch_threads: PositiveInt = Field(default=16, description="downloads at once in one prepare task")


class RunConfig(_Part):
    """A whole run."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    manifest: ManifestConfig
    model: ModelConfig
    prompt: str | None = Field(default=None, description="short for tasks: {caption: {prompt: …}}")
    tasks: dict[str, TaskConfig] = {}
    sampling: SamplingConfig = SamplingConfig()
    media: MediaConfig = MediaConfig()
    engine: EngineConfig = EngineConfig()
    output: OutputConfig
    cache: CacheConfig = CacheConfig()
    storage: StorageConfig = StorageConfig()

    @model_validator(mode="after")
    def _has_a_question(self) -> RunConfig:
        if (self.prompt is None) == (not self.tasks):
            raise ValueError("set either `prompt` (one question) or `tasks` (several), and one of them")
        return self

    @model_validator(mode="after")
    def _can_cut(self) -> RunConfig:
        columns = self.manifest.columns
        if self.media.video.backend == "decord" and (columns.start or columns.end):
            raise ValueError(
                "decord takes whole videos: for manifest.columns.start and .end set media.video.backend=pyav"
            )
        return self

    @property
    def questions(self) -> dict[str, str]:
        """Task name → the prompt that it puts to each item."""
        if self.prompt is not None:
            return {"caption": self.prompt}
        return {name: task.prompt for name, task in self.tasks.items()}
