"""Whatever is killed at whatever moment: at most two more runs of the same command give the same rows.

`make test` kills each kind of process once, `make crash-matrix` ten times on disk and ten times on S3.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from ray.cluster_utils import Cluster

from pipeline.storage import Storage
from tests.conftest import REPOSITORY, S3Server
from tests.e2e.configurations import kill_all, results

DISTINCT, COPIES, MISSING = 120, 30, 5
ROWS = DISTINCT + COPIES + MISSING
SAME_COLUMNS = ["id", "task", "status", "text", "error_code", "row", "manifest"]
TITLES = {
    "engine actor": "MapBatches(Generate)",
    "prepare worker": "MapBatches(Prepare)",
    "write task": "MapBatches(Write)",
    "answers actor": "AnswersActor",
}
VICTIMS = [*TITLES, "engine core", "node", "driver", "everything"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    seeds = metafunc.config.getoption("--crash-seeds")
    cases = [
        Case(victim, store, "echo", seed)
        for victim in VICTIMS
        if victim != "engine core"
        for store in ("disk", "s3")
        for seed in range(seeds)
    ]
    real = [Case(victim, "disk", "vllm", 0) for victim in VICTIMS]
    if seeds == 1:
        # Each victim on one of the stores only; cores of real engines die in other tests.
        cases = [case for number, case in enumerate(cases) if number % 2 == number // 2 % 2]
        real = []
    metafunc.parametrize("case", [*cases, *real], ids=str)


@dataclass(frozen=True)
class Case:
    victim: str
    store: str
    engine: str
    seed: int

    def __str__(self) -> str:
        return f"{self.victim}-{self.store}-{self.engine}-{self.seed}"


@dataclass(frozen=True)
class Place:
    """Where a dataset and its output are, and how a run is started there."""

    storage: Storage
    config: Path
    output: str

    def start(self, log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "jobs/caption_dataset.py",
            "--config",
            self.config,
            f"output.uri={self.output}",
        ]
        command.append(f"engine.request_log={log}")
        return subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, **environment}, start_new_session=True,
            stdout=(log.parent / "printed").open("ab"), stderr=subprocess.STDOUT,
        )  # fmt: skip

    def rows(self) -> pa.Table:
        return results(self.output, self.storage).select(SAME_COLUMNS)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of one colour each, some of them twice, some missing, in random order."""
    folder = tmp_path_factory.mktemp("crash")
    for number in range(DISTINCT):
        Image.new("RGB", (64, 64), (number, 2 * number, 255 - number)).save(folder / f"{number}.png")
    names = [*range(DISTINCT), *range(COPIES), *(f"missing-{i}" for i in range(MISSING))]
    random.Random(0).shuffle(names)
    lines = [
        {"id": f"{row}", "image": f"{name}.png", "question": f"Is it {name}?"} for row, name in enumerate(names)
    ]
    (folder / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def place_of(
    dataset: Path, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Place]:
    bucket = s3_server.make_bucket()
    fs, path = s3_server.storage.filesystem(f"{bucket}/data")
    fs.put(str(dataset), path, recursive=True)

    def made(store: str, engine: str) -> Place:
        folder = tmp_path_factory.mktemp("run")
        storage = Storage() if store == "disk" else s3_server.storage
        written = yaml.safe_load((REPOSITORY / "conf/quickstart.yaml").read_text())
        written["model"]["path"] = str(REPOSITORY / written["model"]["path"])
        written["manifest"] = {"uri": str(dataset / "m.jsonl") if store == "disk" else f"{bucket}/data/m.jsonl"}
        written["engine"] |= {"kind": engine, "batches_in_flight": 4}
        written["output"] = {"uri": "given", "shard_rows": 64, "batch_rows": 8}
        if store == "s3":
            written["storage"] = s3_server.config
        config = folder / "run.yaml"
        config.write_text(yaml.safe_dump(written))
        return Place(storage, config, str(folder / "out") if store == "disk" else f"{bucket}/{folder.name}")

    return made


@pytest.fixture(scope="module")
def undisturbed(
    place_of: Callable[[str, str], Place], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], pa.Table]:
    """The rows of a run that nothing happens to, of each engine."""
    known: dict[str, pa.Table] = {}

    def rows(engine: str) -> pa.Table:
        if engine not in known:
            place = place_of("disk", engine)
            assert place.start(tmp_path_factory.mktemp("log") / "log", {"RAY_ADDRESS": "local"}).wait() == 0
            known[engine] = place.rows()
            assert Counter(known[engine]["status"].to_pylist()) == {"ok": DISTINCT + COPIES, "failed": MISSING}
        return known[engine]

    return rows


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    """Two nodes that outlive what is killed in them."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    made.add_node(num_cpus=2)
    yield made
    made.shutdown()


def test_the_rows_are_those_of_an_undisturbed_run(
    case: Case,
    shared_cluster: Cluster,
    place_of: Callable[[str, str], Place],
    undisturbed: Callable[[str], pa.Table],
    tmp_path: Path,
) -> None:
    expected = undisturbed(case.engine)
    place = place_of(case.store, case.engine)
    chance = random.Random(f"{case}")
    # With everything goes the Ray that the run has started for itself.
    environment = {"RAY_ADDRESS": "local" if case.victim == "everything" else shared_cluster.address}
    logs = [tmp_path / f"log-{number}" for number in range(3)]
    job = place.start(logs[0], environment)
    victim = _Victim(case.victim, job, shared_cluster)
    # All is prepared before a real engine has answered anything.
    early = case.victim == "prepare worker" and case.engine == "vllm"
    _wait_for(place, job, batches=0 if early else chance.randint(1, ROWS // 8 // 2))
    time.sleep(chance.uniform(0, 0.3))
    victim.kill()
    durable = _answered(place) if case.victim in ("driver", "everything") else set()
    runs = 1
    while job.wait() != 0:
        assert runs < 3, (tmp_path / "printed").read_text()[-4000:]
        durable |= _answered(place)
        job = place.start(logs[runs], environment)
        runs += 1
    assert place.rows().equals(expected.select(SAME_COLUMNS)), f"after {runs} runs"
    hidden = [info.uri for info in place.storage.find(place.output) if "/.batches/" in info.uri]
    assert [uri for uri in hidden if not uri.endswith(".tmp")] == []
    asked_later = Counter(uuid for log in logs[1:] for uuid in _asked(log))
    assert not durable & asked_later.keys()
    assert all(count == 1 for count in asked_later.values()) or runs > 2


@dataclass(frozen=True)
class _Victim:
    name: str
    job: subprocess.Popen[bytes]
    cluster: Cluster

    def kill(self) -> None:
        """SIGKILL, at once or as soon as there is such a process."""
        match self.name:
            case "node":
                self.cluster.remove_node(self.cluster.list_all_nodes()[-1], allow_graceful=False)
                self.cluster.add_node(num_cpus=2)
            case "driver":
                self.job.kill()
            case "everything":
                kill_all(self.job, psutil.Process(self.job.pid).children(recursive=True))
            case _:
                self._find().kill()

    def _find(self) -> psutil.Process:
        title = TITLES.get(self.name, "EngineCore")
        while self.job.poll() is None:
            for process in psutil.Process().children(recursive=True):
                try:
                    if title in " ".join(process.cmdline()):
                        return process
                except psutil.Error:
                    continue
        raise AssertionError(f"the run ended before its {self.name} was found")


def _wait_for(place: Place, job: subprocess.Popen[bytes], batches: int) -> None:
    while len(_batches(place)) < batches:
        assert job.poll() is None, "the run ended before anything was killed"
        time.sleep(0.02)


def _batches(place: Place) -> list[str]:
    return [
        info.uri
        for info in place.storage.find(place.output)
        if "recipe=" in info.uri and info.uri.endswith(".parquet")
    ]


def _answered(place: Place) -> set[str]:
    found = set()
    for uri in _batches(place):
        if "/_index/" in uri or uri.rpartition("/")[2].startswith("."):
            continue
        try:
            table = pq.read_table(pa.BufferReader(place.storage.read(uri)), columns=["item_uuid", "status"])
        except FileNotFoundError:
            continue  # its shard was finished meanwhile, by what outlives the driver for a moment
        found |= {row["item_uuid"] for row in table.to_pylist() if row["status"] == "ok"}
    return found


def _asked(folder: Path) -> list[str]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    return [json.loads(line)["item_uuid"] for line in lines]
