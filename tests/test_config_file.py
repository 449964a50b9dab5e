"""Configuration files: overrides, variables, secrets, and one clear message for each fault."""

from pathlib import Path

import pytest
import yaml

from pipeline.config_file import LoadedConfig, load_config
from pipeline.errors import ConfigError
from pipeline.models.registry import load_spec

MINIMAL = {
    "manifest": {"uri": "m.parquet"},
    "model": {"type": "llava"},
    "prompt": "Describe.",
    "output": {"uri": "out"},
}


def load(tmp_path: Path, document: object, *overrides: str, **environment: str) -> LoadedConfig:
    path = tmp_path / "run.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return load_config(path, overrides, environment)


def problems(tmp_path: Path, document: object, *overrides: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, document, *overrides, **environment)
    return raised.value.problems


def test_the_example_of_the_readme_is_taken_as_it_stands() -> None:
    run = load_config(Path("conf/caption_s3.yaml")).run
    assert run.manifest.columns.id == "key"
    assert run.manifest.keep == ["license"]
    assert run.questions == {"caption": "Describe this image in detail."}
    assert (run.engine.replicas.min, run.engine.replicas.max) == (1, 8)
    assert run.engine.args == {"max_model_len": 8192}
    assert (run.output.shard_rows, run.output.batch_rows) == (4096, 32)
    assert run.media.video.num_frames == 16


def test_overrides_are_yaml_and_may_make_new_folders(tmp_path: Path) -> None:
    run = load(
        tmp_path, MINIMAL, "output.batch_rows=8", "engine.args.enforce_eager=true", "model.path=null",
        "engine.replicas=3", "manifest.keep=[a, b]", "storage.s3.endpoint_url=http://h:1",
    ).run  # fmt: skip
    assert run.output.batch_rows == 8
    assert run.engine.args == {"enforce_eager": True}
    assert (run.engine.replicas.min, run.engine.replicas.max) == (3, 3)
    assert run.manifest.keep == ["a", "b"]
    assert run.storage.s3.endpoint_url == "http://h:1"


def test_variables_are_expanded_in_values_but_not_in_what_is_recorded(tmp_path: Path) -> None:
    document = MINIMAL | {
        "output": {"uri": "s3://${BUCKET}/out"},
        "storage": {"s3": {"access_key_id": "${KEY}", "secret_access_key": "written"}},
    }
    loaded = load(tmp_path, document, BUCKET="b", KEY="k: [not, yaml]")
    assert loaded.run.output.uri == "s3://b/out"
    secret = loaded.run.storage.s3.access_key_id
    assert secret is not None
    assert secret.get_secret_value() == "k: [not, yaml]"
    assert loaded.written["output"] == {"uri": "s3://${BUCKET}/out"}
    assert loaded.written["storage"]["s3"] == {"access_key_id": "${KEY}", "secret_access_key": "***"}
    assert "written" not in repr(loaded.run)


def test_a_missing_variable_names_the_field_and_the_variable(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, MINIMAL | {"output": {"uri": "s3://${NOWHERE}/x"}})
    assert problem.startswith("output.uri:")
    assert "NOWHERE" in problem


def test_every_fault_is_told_at_once_with_field_value_and_cure(tmp_path: Path) -> None:
    document = MINIMAL | {
        "output": {"uri": "out", "batch_rows": 0, "shard_row": 5},
        "engine": {"replicas": {"min": 3, "max": 2}},
        "media": {"video": {"num_frames": 4, "fps": 2}},
    }
    text = "\n".join(found := problems(tmp_path, document))
    assert len(found) == 4
    assert "output.batch_rows: Input should be greater than 0 (found 0)" in text
    assert "output.shard_row: no such field; did you mean shard_rows?" in text
    assert "engine.replicas: min (3) is more than max (2)" in text
    assert "media.video: set one of num_frames, fps and keyframes, not several" in text


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("manifest: [", "is not YAML"),
        ("just text", "expected fields"),
        ({k: v for k, v in MINIMAL.items() if k != "output"}, "output: is required"),
        ({k: v for k, v in MINIMAL.items() if k != "prompt"}, "set either `prompt`"),
        (MINIMAL | {"tasks": {"ocr": {"prompt": "Read."}}}, "set either `prompt`"),
    ],
)
def test_what_is_not_a_configuration_is_refused(tmp_path: Path, document: object, told: str) -> None:
    assert told in "\n".join(problems(tmp_path, document))


def test_a_bad_override_and_a_missing_file_are_named(tmp_path: Path) -> None:
    assert "write it as field.name=value" in problems(tmp_path, MINIMAL, "output.uri")[0]
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file"):
        load_config(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("path", sorted(Path("conf").glob("*.yaml")), ids=str)
def test_every_configuration_to_copy_is_right(path: Path) -> None:
    run = load_config(path).run
    assert load_spec(run.model.type)
    assert run.questions
