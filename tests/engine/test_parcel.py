"""Arrays of every kind arrive as they were sent, and leave nothing behind."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pipeline.engine.parcel import Parcel, allow_many_parcels, open_parcel, pack_parcel
from pipeline.engine.parcel_folder import ParcelFolder


@pytest.fixture
def folder() -> Iterator[Path]:
    made = ParcelFolder()
    yield made.path
    assert list(made.path.iterdir()) == []


def value() -> dict[str, Any]:
    picture = Image.fromarray(np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3))
    return {
        "words": ["a", {"b": 1.5}],
        "picture": picture,
        "palette": picture.convert("P"),
        "frames": np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "half": torch.arange(12, dtype=torch.float32).reshape(3, 4).to(torch.bfloat16),
        "slice": torch.arange(10)[::3],
        "one": torch.tensor(7),
        "none": torch.empty(0, 3),
        "flags": torch.tensor([True, False]),
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Image.Image):
        return one.mode == other.mode and np.array_equal(np.asarray(one), np.asarray(other))
    return bool(one == other)


def test_a_value_arrives_as_it_was_sent(folder: Path) -> None:
    sent, got = value(), open_parcel(pack_parcel(value(), folder))
    assert [name for name in sent if not same(sent[name], got[name])] == []
    got["half"] += 1  # its memory is the receiver's own


def test_the_arrays_are_in_files_of_their_own_and_not_in_the_pickle(folder: Path) -> None:
    parcel = pack_parcel({"pixels": np.zeros((100, 100, 3), np.uint8), "tensor": torch.zeros(4000)}, folder)
    assert len(parcel.pickled) < 1000
    assert [Path(path).stat().st_size for path in parcel.files] == [30_000, 16_000]
    open_parcel(parcel)


def test_a_value_without_large_arrays_needs_no_file(folder: Path) -> None:
    parcel = pack_parcel({"prompt": "words", "grid": torch.tensor([1, 54, 74])}, folder)
    assert parcel.files == ()
    got = open_parcel(parcel, by_file=True)
    assert (got["prompt"], got["grid"].tolist()) == ("words", [1, 54, 74])


def double(parcel: Parcel, folder: Path) -> Parcel:
    return pack_parcel(open_parcel(parcel) * 2, folder)


def test_there_and_back_through_another_process(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.apply(double, (pack_parcel(torch.arange(1000), folder), folder))
    assert torch.equal(open_parcel(back), torch.arange(0, 2000, 2))


def test_where_there_is_no_room_nothing_is_left(folder: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            pack_parcel([np.ones(9_000, np.uint8), np.ones(20_000, np.uint8)], folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(folder.iterdir()) == []


def hold_many(folder: Path, count: int, allow: bool) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    if allow:
        allow_many_parcels()
    held = [open_parcel(pack_parcel(np.full(1000, n), folder)) for n in range(count)]
    assert [array[0] for array in held] == list(range(count))


@pytest.mark.parametrize(("allow", "status"), [(True, 0), (False, 1)])
def test_more_are_open_at_once_than_a_shell_allows_files(tmp_path: Path, allow: bool, status: int) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=hold_many, args=(tmp_path, 100, allow))
    process.start()
    process.join(60)
    assert process.exitcode == status
