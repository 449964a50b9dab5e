"""Processes that answer through links: each its own, and none outlives what it answers to."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from pipeline.engine import render_processes
from pipeline.engine.parcel import open_parcel, pack_parcel
from pipeline.engine.render_processes import fork_and_guard, load_and_fork

PARENT = """
import multiprocessing, time
from tests.engine.test_render_processes import started
if __name__ == "__main__":
    process, control, links = started()
    for link in links:
        link.send("pid")
    print(process.pid, *(link.recv() for link in links), flush=True)
    time.sleep(100)
"""


def answer(asked: Any) -> Any:
    """What a fork answers here: its own number, the question, or nothing, since it is dead."""
    if asked == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if asked == "error":
        raise ValueError("a bug")
    return os.getpid() if asked == "pid" else asked


def started() -> tuple[Any, Connection, list[Connection]]:
    """The process that forks two others, and our ends."""
    context = multiprocessing.get_context("spawn")
    control, its = context.Pipe()
    pairs = [context.Pipe() for _ in range(2)]
    process = context.Process(
        target=fork_and_guard, args=(answer, its, [theirs for _, theirs in pairs]), daemon=True
    )
    process.start()
    for end in (its, *(theirs for _, theirs in pairs)):
        end.close()
    return process, control, [ours for ours, _ in pairs]


def received(link: Connection) -> Any:
    """What comes through the link, or its end, soon."""
    assert link.poll(30)
    return link.recv()


@pytest.fixture
def forked() -> Iterator[tuple[Any, Connection, list[Connection]]]:
    process, control, links = started()
    yield process, control, links
    control.close()
    process.join(30)
    assert not process.is_alive()


def test_each_link_has_a_process_of_its_own(forked: tuple[Any, Connection, list[Connection]]) -> None:
    process, _, (one, other) = forked
    pids = set()
    for link in (one, other):
        link.send("pid")
        pids.add(received(link))
    assert pids == {child.pid for child in psutil.Process(process.pid).children()}
    assert len(pids) == 2


@pytest.mark.parametrize("end", ["crash", "error"])
def test_a_dead_ones_link_tells_it_and_the_others_go_on(
    forked: tuple[Any, Connection, list[Connection]], end: str
) -> None:
    _, _, (one, other) = forked
    one.send(end)
    with pytest.raises((EOFError, ConnectionError)):
        received(one)
    other.send("still here")
    assert received(other) == "still here"


def test_all_end_when_control_does_even_in_the_middle_of_an_answer(
    forked: tuple[Any, Connection, list[Connection]],
) -> None:
    process, control, (one, _) = forked
    one.send("pid")
    os.kill(received(one), signal.SIGSTOP)
    forks = psutil.Process(process.pid).children()
    control.close()
    assert psutil.wait_procs(forks, timeout=30)[1] == []
    with pytest.raises((EOFError, ConnectionError)):
        received(one)


def test_all_end_with_the_process_that_they_answer_to() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        processes = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(processes) == 3
        parent.kill()
    assert psutil.wait_procs(processes, timeout=30)[1] == []


def test_the_folder_of_parcels_goes_when_nothing_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: dict[str, Any]) -> Any:
        raise OSError("no such model")

    monkeypatch.setattr(render_processes, "_renderer", nothing)
    (tmp_path / "parcels").mkdir()
    (tmp_path / "parcels/one").write_bytes(b"tensor")
    control, its = multiprocessing.Pipe()
    with control, its, pytest.raises(OSError, match="no such model"):
        load_and_fork({}, its, [], tmp_path / "parcels")
    assert list(tmp_path.iterdir()) == []


def rendering(control: Connection, links: list[Connection], folder: Path) -> None:
    render_processes._renderer = lambda _: answer  # type: ignore[assignment]
    load_and_fork({}, control, links, folder)


@pytest.mark.parametrize("end", [signal.SIGTERM, None])
def test_the_folder_goes_with_the_process_that_is_ended_or_left(tmp_path: Path, end: int | None) -> None:
    (tmp_path / "parcels").mkdir()
    context = multiprocessing.get_context("spawn")
    (control, its), (link, theirs) = context.Pipe(), context.Pipe()
    process = context.Process(target=rendering, args=(its, [theirs], tmp_path / "parcels"))
    process.start()
    its.close()
    theirs.close()
    link.send(pack_parcel("pid", tmp_path / "parcels"))
    parcel, _ = received(link)
    fork = psutil.Process(open_parcel(parcel))
    if end:
        os.kill(process.pid or 0, end)
    else:
        control.close()
    process.join(30)
    assert list(tmp_path.iterdir()) == []
    assert psutil.wait_procs([fork], timeout=30)[1] == []


def test_what_was_rendered_or_why_it_was_not_is_the_reply(tmp_path: Path) -> None:
    def render(prompt: str) -> Any:
        if prompt == "bad":
            raise ValueError("too many images")
        return np.arange(1000)

    def reply(prompt: str, folder: Path) -> Any:
        return render_processes._reply(render, pack_parcel(prompt, folder), folder)

    parcel, refusal = reply("good", tmp_path)
    assert (open_parcel(parcel).tolist(), refusal) == (list(range(1000)), None)
    assert reply("bad", tmp_path) == (None, "ValueError: too many images")
    assert isinstance(reply("good", tmp_path / "missing"), OSError)
