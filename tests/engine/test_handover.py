"""A tensor goes from process to process as the name of its file, and the file goes when nobody needs it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.engine.handover import FileTensor, can_hand_over
from pipeline.engine.parcel import open_parcel, pack_parcel
from pipeline.engine.parcel_folder import ParcelFolder

NUMBERS = torch.arange(6000, dtype=torch.float32).reshape(2, 30, 100).to(torch.bfloat16)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = ParcelFolder()
    yield made.path
    gc.collect()
    check_empty(made.path)


def received(folder: Path) -> Any:
    return open_parcel(pack_parcel(NUMBERS, folder), by_file=True)


def elsewhere(queue: Any, back: Any) -> None:
    for tensor in iter(queue.get, None):
        tensor.add_(1)  # its memory is this process's own
        back.put((type(tensor) is torch.Tensor, tensor.tolist()))


def sent(*tensors: torch.Tensor, then: Callable[[], object] = lambda: None) -> list[Any]:
    """What another process has of them, if each is one greater than it was here."""
    context = torch.multiprocessing.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=elsewhere, args=(queue, back))
    process.start()
    for tensor in (*tensors, None):
        queue.put(tensor)
    got = [back.get(timeout=60) for _ in tensors]
    then()
    process.join(60)
    assert process.exitcode == 0
    return got


def check_empty(folder: Path) -> None:
    assert list(folder.iterdir()) == []


def test_another_process_has_the_tensor_and_the_file_is_gone(folder: Path) -> None:
    tensor = received(folder)
    assert len(list(folder.iterdir())) == 1
    got = sent(tensor, then=lambda: check_empty(folder))
    assert got == [(True, (NUMBERS + 1).tolist())]


def test_vllm_is_told_not_to_copy_it(folder: Path) -> None:
    tensor = received(folder)
    assert (type(tensor), tensor.is_shared(), torch.empty(1).is_shared()) == (FileTensor, True, False)


def test_a_second_answer_to_the_same_request_gets_a_copy(folder: Path) -> None:
    tensor = received(folder)
    assert sent(tensor, tensor)[1] == (True, (tensor.as_subclass(torch.Tensor) + 1).tolist())


def test_a_tensor_that_is_never_sent_takes_its_file_with_it(folder: Path) -> None:
    tensor = received(folder)
    assert torch.equal(tensor, NUMBERS)
    del tensor
    gc.collect()
    check_empty(folder)


def test_what_is_computed_from_it_is_a_plain_tensor(folder: Path) -> None:
    tensor = received(folder)
    assert {type(tensor + 1), type(tensor[0]), type(tensor.float())} == {torch.Tensor}


@pytest.mark.parametrize(
    ("arguments", "can"),
    [
        ({}, True),
        ({"tensor_parallel_size": 1, "data_parallel_size": 1}, True),
        ({"tensor_parallel_size": 2}, False),
        ({"pipeline_parallel_size": 2}, False),
        ({"data_parallel_size": 2}, False),
        ({"mm_tensor_ipc": "direct_rpc"}, False),
    ],
)
def test_which_engines_take_files(
    arguments: dict[str, Any], can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_WORKER_MULTIPROC_METHOD", raising=False)
    assert can_hand_over(arguments) is can


def test_an_engine_that_the_user_has_forked_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork")
    assert not can_hand_over({})
