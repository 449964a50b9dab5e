"""Plans: every problem told at once before an engine is asked for, and what is left to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import RunConfig
from pipeline.config_file import LoadedConfig
from pipeline.errors import ConfigError, ItemError
from pipeline.plan import Plan, make_plan
from pipeline.preview import first_prompts
from pipeline.results.lineage import write_records
from pipeline.storage import Storage
from tests.conftest import REPOSITORY, S3Server
from tests.stages.conftest import png


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten pictures and a manifest of them."""
    (tmp_path / "p").mkdir()
    lines = []
    for number in range(10):
        (tmp_path / f"p/{number}.png").write_bytes(png("red", (10 + number, 10)))
        lines.append(json.dumps({"key": f"k{number}", "url": f"p/{number}.png", "license": "cc"}))
    (tmp_path / "m.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def configuration(folder: Path, **parts: Any) -> LoadedConfig:
    document: dict[str, Any] = {
        "manifest": {"uri": str(folder / "m.jsonl"), "columns": {"id": "key", "image": "url"}},
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe.",
        "engine": {"kind": "echo"},
        "output": {"uri": str(folder / "out"), "shard_rows": 6, "batch_rows": 4},
    }
    for name, value in parts.items():
        document[name] = {**document[name], **value} if isinstance(document.get(name), dict) else value
    return LoadedConfig(RunConfig.model_validate(document), document)


def plan(folder: Path, **parts: Any) -> Plan:
    return make_plan(configuration(folder, **parts))


def problems(folder: Path, **parts: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        plan(folder, **parts)
    return raised.value.problems


def test_shards_and_batches(folder: Path) -> None:
    made = plan(folder)
    assert [(work.shard.start, work.shard.stop, work.ranges) for work in made.work] == [
        (0, 6, ((0, 4), (4, 6))),
        (6, 10, ((6, 10),)),
    ]
    assert (len(made.shards), made.work_rows, made.done_rows, made.batch_count) == (2, 10, 0, 3)
    assert not (folder / "out").exists()


def test_what_is_durable_is_not_planned_again(folder: Path) -> None:
    first = plan(folder)
    name = first.work[0].shard.name
    first.storage.put(first.ledger.batch_uri(name, (0, 4)), b"")
    first.storage.put(first.ledger.shard_uri(first.work[1].shard.name), b"")
    second = plan(folder)
    assert [work.ranges for work in second.work] == [((4, 6),)]
    assert second.done_rows == 8
    second.storage.put(second.ledger.batch_uri(name, (4, 6)), b"")
    third = plan(folder)
    assert third.work == []
    assert third.to_finish == [name]


def test_every_problem_is_told_at_once(folder: Path) -> None:
    (folder / "file").touch()
    found = problems(
        folder,
        manifest={"columns": {"id": "kee", "image": "url"}, "keep": ["licence"]},
        model={"type": "qwen2_5_vll"},
        output={"uri": str(folder / "file")},
    )
    text = "\n".join(found)
    assert len(found) == 4
    assert "'kee'" in text
    assert "key" in text
    assert "'licence'" in text
    assert "license" in text
    assert "unknown model 'qwen2_5_vll'; did you mean qwen2_5_vl" in text
    assert "output.uri: cannot write to" in text


def test_parts_of_videos_by_row_want_a_decoder_that_can_cut(folder: Path) -> None:
    columns = {"id": "key", "video": "url", "end": "license"}
    with pytest.raises(ValueError, match=r"manifest\.columns\.start and \.end set media\.video\.backend=pyav"):
        configuration(folder, manifest={"columns": columns}, media={"video": {"backend": "decord"}})


def test_columns_that_name_parts_of_videos_plan_the_rows_anew_in_the_same_recipe(folder: Path) -> None:
    videos = {"manifest": {"columns": {"id": "key", "video": "url"}}}
    parts = {"manifest": {"columns": {"id": "key", "video": "url", "start": "license"}}}
    before, after = plan(folder, **videos), plan(folder, **parts)
    # As it was before there were such columns; it changes only when answers do.
    assert before.recipe.id == after.recipe.id == "c77a49cee6c66c67"
    assert {shard.name for shard in before.shards}.isdisjoint(shard.name for shard in after.shards)


def test_other_columns_plan_the_rows_anew_in_the_same_recipe(folder: Path) -> None:
    def planned(**manifest: Any) -> tuple[str, frozenset[str]]:
        made = plan(folder, manifest={"columns": {"id": "key", "image": "url"}, **manifest})
        return made.recipe.id, frozenset(shard.name for shard in made.shards)

    base = planned()
    others = [
        planned(columns={"id": "url", "image": "url"}),
        planned(columns={"id": "key", "video": "url"}),
        planned(columns={"id": "key", "image": "url", "question": "license"}),
        planned(keep=["license"]),
        planned(keep=["license", "url"]),
    ]
    assert {recipe for recipe, _ in others} == {base[0]}
    assert len({base[1], *(shards for _, shards in others)}) == 1 + len(others)
    assert planned() == base


def test_a_model_that_lacks_the_modality_is_refused(folder: Path) -> None:
    (folder / "p/clip.mp4").write_bytes(b"x")
    manifest = {"uri": str(folder / "p"), "columns": {}}
    (problem,) = problems(folder, manifest=manifest, model={"type": "llava"})
    assert "llava takes image" in problem
    assert "has videos" in problem
    assert plan(folder, manifest=manifest).manifest.rows == 11


def test_remote_code_needs_a_grant_and_a_pinned_revision(folder: Path) -> None:
    internvl = {"type": "internvl_chat"}
    assert (
        "model.trust_remote_code: internvl_chat runs Python of OpenGVLab" in problems(folder, model=internvl)[0]
    )
    granted = internvl | {"trust_remote_code": True}
    assert problems(folder, model=granted)[0].startswith("model.revision: pin a commit")
    assert plan(folder, model=granted | {"revision": "0" * 40}).arguments["revision"] == "0" * 40


def test_unknown_engine_arguments_are_named_before_an_engine_is_started(folder: Path) -> None:
    engine = {"kind": "vllm", "args": {"max_modle_len": 1, "enforce_eager": True}}
    (problem,) = problems(folder, engine=engine)
    assert problem == "engine.args.max_modle_len: vLLM has no such engine argument; did you mean max_model_len?"


def test_a_missing_model_folder_is_named(folder: Path) -> None:
    engine = {"kind": "vllm"}
    (problem,) = problems(folder, engine=engine, model={"type": "qwen2_5_vl", "path": "/nowhere/model"})
    assert problem == "model.path: there is no folder /nowhere/model"


def test_an_unreachable_or_missing_store_is_named(folder: Path, s3_server: S3Server) -> None:
    (problem,) = problems(folder, output={"uri": "s3://no-such-bucket/out"}, storage=s3_server.config)
    assert problem.startswith("output.uri: cannot write to s3://no-such-bucket/out:")
    bucket = s3_server.make_bucket()
    assert plan(folder, output={"uri": f"{bucket}/out"}, storage=s3_server.config).work_rows == 10
    assert s3_server.storage.find(bucket) == []


def test_what_changes_answers_makes_another_recipe_and_what_changes_speed_does_not(folder: Path) -> None:
    base = plan(folder).recipe.id
    same: list[dict[str, Any]] = [
        {"engine": {"replicas": 4, "tensor_parallel_size": 2}},
        {"engine": {"args": {"gpu_memory_utilization": 0.5, "max_num_seqs": 8}}},
        {"output": {"batch_rows": 2}},
        {"media": {"max_bytes": 10**6}},
    ]
    other: list[dict[str, Any]] = [
        {"prompt": "Describe!"},
        {"sampling": {"temperature": 0.5}},
        {"sampling": {"top_k": 3}},
        {"media": {"max_pixels": 1000}},
        {"media": {"video": {"fps": 1}}},
        {"engine": {"args": {"dtype": "float32"}}},
        {"engine": {"args": {"mm_processor_kwargs": {"max_pixels": 9}}}},
        {"model": {"type": "qwen3_vl"}},
        {"output": {"accept_truncated": True}},
    ]
    assert {plan(folder, **parts).recipe.id for parts in same} == {base}
    ids = [plan(folder, **parts).recipe.id for parts in other]
    assert len({base, *ids}) == 1 + len(other)


def test_a_changed_manifest_is_planned_anew_and_its_old_results_are_put_aside(folder: Path) -> None:
    begun = plan(folder)
    write_records(begun.storage, begun.ledger.folder, begun.recipe.as_dict(), begun.record)
    done, other = (work.shard.name for work in begun.work)
    begun.storage.put(begun.ledger.shard_uri(done), b"")
    begun.storage.put(begun.ledger.batch_uri(other, (6, 8)), b"")
    assert (plan(folder).work_rows, plan(folder).stale, plan(folder).warnings) == (2, [], [])
    with (folder / "m.jsonl").open("a") as file:
        file.write('{"key": "new", "url": "p/0.png", "license": "cc"}\n')
    grown = plan(folder)
    assert (grown.work_rows, grown.done_rows) == (11, 0)
    assert grown.warnings[0].startswith("manifest.uri: m.jsonl changed since")
    assert {move.source for move in grown.stale} == {
        begun.ledger.shard_uri(done),
        begun.ledger.batch_uri(other, (6, 8)),
    }


def test_the_shard_size_of_a_begun_output_stays(folder: Path) -> None:
    begun = plan(folder)
    write_records(begun.storage, begun.ledger.folder, begun.recipe.as_dict(), begun.record)
    changed = plan(folder, output={"shard_rows": 3})
    assert [work.shard.name for work in changed.work] == [work.shard.name for work in begun.work]
    assert "begun with 6" in changed.warnings[0]


def test_a_system_prompt_goes_with_a_chat_template_only(folder: Path) -> None:
    said = {"system_prompt": "Be brief.", "chat_template_kwargs": {"enable_thinking": False}}
    (problem,) = problems(folder, model={"type": "qwen2_5_vl", **said})
    assert "use model.type=auto" in problem
    demo = {"type": "auto", "path": str(REPOSITORY / "demo/model")}
    plain, briefed = plan(folder, model=demo), plan(folder, model={**demo, **said})
    assert plain.recipe.id != briefed.recipe.id
    prompt = first_prompts(briefed, 1)[0].prompt
    assert prompt is not None
    assert prompt.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n")


def test_first_prompts_are_as_they_will_be_sent(folder: Path) -> None:
    previews = first_prompts(plan(folder), 2)
    assert [(preview.id, preview.task) for preview in previews] == [("k0", "caption"), ("k1", "caption")]
    assert previews[0].prompt == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        "<|vision_start|><|image_pad|><|vision_end|>Describe.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_demo_models_weights_are_in_the_recipe(folder: Path) -> None:
    def recipe(path: str) -> str:
        return plan(folder, engine={"kind": "vllm"}, model={"type": "qwen2_5_vl", "path": path}).recipe.id

    copy = folder / "copy"
    copy.mkdir()
    for file in (REPOSITORY / "demo/model").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert recipe(str(copy)) == recipe(str(REPOSITORY / "demo/model"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    assert recipe(str(copy)) != recipe(str(REPOSITORY / "demo/model"))
    assert Storage().find(str(copy))


def test_a_list_of_local_manifests_may_name_media_in_the_folders_of_each(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other/m.jsonl").write_text('{"key": "x", "url": "x.png"}\n')
    (folder / "other/x.png").write_bytes(png("red", (10, 10)))
    (folder / "main").mkdir()
    (folder / "main/m.jsonl").write_text('{"key": "y", "url": "y.png"}\n')
    made = plan(folder, manifest={"uri": [str(folder / "main/m.jsonl"), str(folder / "{other,}" / "m.jsonl")]})
    assert [file.name for file in made.manifest.files] == ["main/m.jsonl", "other/m.jsonl", "m.jsonl"]
    only_other = plan(folder, manifest={"uri": [str(folder / "main/m.jsonl"), str(folder / "other/m.jsonl")]})
    assert only_other.storage.fetch(str(folder / "other/x.png"), 1000)
    with pytest.raises(ItemError, match="path_not_allowed"):
        only_other.storage.fetch(str(folder / "p/0.png"), 1000)
