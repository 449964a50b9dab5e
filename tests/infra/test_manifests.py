"""The files of infra/ agree with the repository, with each other and with what Ray and KubeRay require."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pipeline.config_file import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
INFRA = REPOSITORY / "infra"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((INFRA / name).read_text()))


RAYJOB: dict[str, Any] = documents("rayjob.yaml")[0]
CLUSTER: dict[str, Any] = RAYJOB["spec"]["rayClusterSpec"]
LAUNCHER: dict[str, Any] = documents("ray-cluster.yaml")[0]
DOCKERFILE = (INFRA / "Dockerfile").read_text()
CRONJOB = next(one for one in documents("cronjob.yaml") if one["kind"] == "CronJob")


def containers(group: dict[str, Any]) -> list[dict[str, Any]]:
    return list(group["template"]["spec"]["containers"])


def job_commands() -> list[tuple[str, str]]:
    """(file, command) for every job command in infra/ and docs/deploy.md, line continuations joined."""
    found = [("rayjob.yaml", RAYJOB["spec"]["entrypoint"])]
    for path in (INFRA / "ray-cluster.yaml", REPOSITORY / "docs" / "deploy.md"):
        text = path.read_text().replace("\\\n", " ")
        pattern = r"(?:python jobs/|framescribe (?:run|plan) )[^`\n]*--config [^`\n]*"
        found += [(path.name, match.group(0)) for match in re.finditer(pattern, text)]
    return found


@pytest.mark.parametrize("path", sorted(INFRA.glob("*.y*ml")), ids=lambda path: path.name)
def test_every_yaml_file_holds_documents(path: Path) -> None:
    assert all(isinstance(document, dict) for document in documents(path.name))


def test_commands_are_found_in_each_file_that_has_them() -> None:
    assert {name for name, _ in job_commands()} == {"rayjob.yaml", "ray-cluster.yaml", "deploy.md"}


@pytest.mark.parametrize(("file", "command"), job_commands())
def test_a_job_command_names_files_that_exist_and_overrides_that_are_taken(file: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    config = words[words.index("--config") + 1]
    overrides = words[words.index("--config") + 2 :]
    if words[0] == "python":
        assert (REPOSITORY / words[1]).is_file()
    run = load_config(REPOSITORY / config, overrides, {}).run
    for override in overrides:
        name, value = override.split("=", 1)
        found: Any = run
        for part in name.split("."):
            found = getattr(found, part)
        assert found == yaml.safe_load(value)


def test_the_image_has_the_files_that_the_commands_name() -> None:
    copied = set(re.findall(r"^COPY \S+ (\w+) \1$", DOCKERFILE, re.MULTILINE))
    assert copied == {"conf", "jobs", "pipeline"}
    ignored = (INFRA / "Dockerfile.dockerignore").read_text().split()
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == {
        *copied, "pyproject.toml", "README.md",
    }  # fmt: skip
    assert re.findall(r"^WORKDIR (\S+)$", DOCKERFILE, re.MULTILINE) == ["/app"]
    groups = [CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]]
    assert {one["workingDir"] for group in groups for one in containers(group)} == {"/app"}


def test_the_image_installs_what_the_project_declares_and_is_not_root() -> None:
    assert "--editable '.[gpu]'" in DOCKERFILE
    assert "gpu" in PROJECT["optional-dependencies"]
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)[-1] == "1000"
    vllm = re.search(r"^ARG VLLM=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert vllm
    assert vllm.group(1) in _specifier("vllm", PROJECT["optional-dependencies"]["gpu"])


def test_ray_is_the_same_version_in_the_image_and_the_manifest_and_one_that_the_project_takes() -> None:
    base = re.search(r"^ARG BASE=rayproject/ray:([\d.]+)-py(\d)(\d+)-", DOCKERFILE, re.MULTILINE)
    assert base
    assert base.group(1) == CLUSTER["rayVersion"]
    assert base.group(1) in _specifier("ray", PROJECT["dependencies"])
    assert f"{base.group(2)}.{base.group(3)}" in SpecifierSet(PROJECT["requires-python"])


def test_the_image_is_the_same_everywhere_and_has_the_projects_version() -> None:
    groups = [CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]]
    images = {one["image"] for group in groups for one in containers(group)}
    images |= {LAUNCHER["docker"][key] for key in LAUNCHER["docker"] if key.endswith("image")}
    built = re.search(r"docker build \S+ \S+ -t (\S+) \.", DOCKERFILE)
    assert built
    assert images == {built.group(1)}
    assert built.group(1).endswith(f":{PROJECT['version']}")


def test_the_rayjob_has_what_kuberay_requires() -> None:
    assert (RAYJOB["apiVersion"], RAYJOB["kind"]) == ("ray.io/v1", "RayJob")
    spec = RAYJOB["spec"]
    assert spec["entrypoint"].startswith("python jobs/")
    assert "\n" not in spec["entrypoint"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["ttlSecondsAfterFinished"] >= 0
    assert spec["backoffLimit"] > 0
    assert CLUSTER["enableInTreeAutoscaling"] is True
    for group in (CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        assert containers(group)


def test_workers_ask_for_the_gpus_that_ray_is_told_of_and_the_head_for_none() -> None:
    for group in CLUSTER["workerGroupSpecs"]:
        gpus = group["rayStartParams"]["num-gpus"]
        for kind in ("requests", "limits"):
            assert [one["resources"][kind].get("nvidia.com/gpu") for one in containers(group)] == [gpus]
    head = CLUSTER["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert "num-gpus" not in head["rayStartParams"]
    assert "nvidia.com/gpu" not in json.dumps(head)


def test_the_clusters_grow_from_nothing_to_what_the_configuration_may_use() -> None:
    engine = load_config(REPOSITORY / "conf" / "caption_s3.yaml").run.engine
    most = engine.replicas.max * engine.tensor_parallel_size
    (group,) = CLUSTER["workerGroupSpecs"]
    assert group["minReplicas"] == group["replicas"] == 0
    assert group["maxReplicas"] * int(group["rayStartParams"]["num-gpus"]) == most
    gpu = LAUNCHER["available_node_types"]["gpu"]
    assert gpu["min_workers"] == 0
    assert gpu["max_workers"] * gpu["resources"]["GPU"] == most
    assert LAUNCHER["max_workers"] == gpu["max_workers"]


def test_no_manifest_holds_a_credential() -> None:
    for path in INFRA.iterdir():
        text = path.read_text()
        assert not re.search(r"\bAKIA[0-9A-Z]{16}\b|\bhf_[A-Za-z0-9]{20,}", text), path
        assert not re.search(r"(?i)(secret_access_key|session_token|hf_token)\s*[:=]\s*\S", text), path


def test_the_cluster_launcher_file_is_valid_for_the_installed_ray() -> None:
    ray = importlib.util.find_spec("ray")
    assert ray
    assert ray.origin
    schema = json.loads((Path(ray.origin).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(LAUNCHER, schema)
    assert LAUNCHER["head_node_type"] in LAUNCHER["available_node_types"]
    assert LAUNCHER["available_node_types"]["head"]["resources"] == {"CPU": 0}
    # What is left out is filled in from Ray's defaults, which install another Ray.
    for name in ("setup_commands", "head_setup_commands", "worker_setup_commands"):
        assert LAUNCHER[name] == []
    # Ray gives the head a role of its own making, and the workers none.
    for node_type in LAUNCHER["available_node_types"].values():
        assert node_type["node_config"]["IamInstanceProfile"]["Name"]


def test_the_nightly_command_creates_the_rayjob_of_its_day(tmp_path: Path) -> None:
    pod = CRONJOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mount,) = container["volumeMounts"]
    created = tmp_path / "created"
    stubs = {
        "kubectl": f'echo "$@" > {created}.arguments; cat > {created}',
        "date": '[ "$*" = "-u +%F" ] && echo 2031-01-02',
    }
    for name, script in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = [word.replace(f"{mount['mountPath']}/", f"{INFRA}/") for word in container["command"]]
    subprocess.run(command, check=True, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (tmp_path / "created.arguments").read_text() == "create -f -\n"
    job = yaml.safe_load(created.read_text())
    assert job["metadata"]["name"] == "framescribe-2031-01-02"
    assert job["spec"]["entrypoint"].split()[-2:] == [
        "manifest.uri=s3://bucket/manifests/2031-01-02.parquet",
        "output.uri=s3://bucket/captions/2031-01-02",
    ]


def test_the_nightly_job_may_create_rayjobs_and_nothing_else() -> None:
    by_kind = {one["kind"]: one for one in documents("cronjob.yaml")}
    assert by_kind["Role"]["rules"] == [
        {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["create"]}
    ]
    account = by_kind["ServiceAccount"]["metadata"]["name"]
    assert by_kind["RoleBinding"]["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert [one["name"] for one in by_kind["RoleBinding"]["subjects"]] == [account]
    pod = CRONJOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account
    # The volume is the ConfigMap that the file's first lines, and docs/deploy.md, say how to make.
    (volume,) = pod["volumes"]
    make = f"kubectl create configmap {volume['configMap']['name']} --from-file=infra/rayjob.yaml"
    assert make in (INFRA / "cronjob.yaml").read_text()
    assert make in (REPOSITORY / "docs" / "deploy.md").read_text()


def _specifier(package: str, requirements: list[str]) -> SpecifierSet:
    parsed = [Requirement(text) for text in requirements]
    return next(one.specifier for one in parsed if one.name == package)
