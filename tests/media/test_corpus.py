"""Every file of the corpus: as another decoder has it, or with its code, in bounded time and memory."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ItemError
from pipeline.media.image import decode_image
from pipeline.media.isolated import IsolatedDecoder, Limits
from pipeline.media.sampling import FrameSampling
from pipeline.media.shrink import PixelBudget
from pipeline.media.video import decode_video
from tests.media.making.drawing import number_in, quarters

FOLDER = Path(__file__).parent / "corpus"
ROWS: list[dict[str, Any]] = json.loads(FOLDER.with_suffix(".json").read_text())
LIMITS = Limits(seconds=60, memory=1536 * 2**20)
MAX_PIXELS = 200_000_000
# Of 255: decoders round and scale chroma in different ways.
TOLERANCE = 2.0


@pytest.fixture(scope="module")
def isolated() -> Iterator[IsolatedDecoder]:
    decoder = IsolatedDecoder()
    yield decoder
    decoder.close()


def options(row: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "budget": PixelBudget(),
        "max_pixels": MAX_PIXELS,
        "recover": row.get("recover", False),
    }
    if row["role"] == "video":
        asked["sampling"] = FrameSampling(**row["sampling"])
    return asked


def faults(row: dict[str, Any], isolated: IsolatedDecoder) -> list[str]:
    """What is not as the table says."""
    decoder = decode_video if row["role"] == "video" else decode_image
    try:
        pixels, metadata = isolated.decode(decoder, (FOLDER / row["file"]).read_bytes(), options(row), LIMITS)
    except ItemError as error:
        return [] if error.code.value in row.get("codes", ()) else [str(error)]
    if "codes" in row:
        return [f"decoded, where it should have failed with {row['codes']}"]
    found = []
    frames = pixels if row["role"] == "video" else pixels[None]
    if [frames.shape[2], frames.shape[1]] != row["size"]:
        found.append(f"size {frames.shape[2]}x{frames.shape[1]}, not {row['size']}")
    apart = np.abs(np.array(quarters(frames[0])) - row["quarters"]).max()
    if apart > TOLERANCE:
        found.append(f"colours are {apart:.1f} of 255 apart: {quarters(frames[0])}, not {row['quarters']}")
    if row["role"] == "video":
        numbers = [number_in(frame) for frame in frames]
        if numbers != row["frames"]:
            found.append(f"frames {numbers}, not {row['frames']}")
        if metadata is None or len(metadata["frames_indices"]) != len(frames):
            found.append(f"metadata {metadata}")
    return found


def peak_bytes(pid: int | None) -> int:
    """The most memory that the process has had since `forget_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def forget_peak(pid: int | None) -> None:
    if pid is not None:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def test_every_file_comes_out_as_another_decoder_has_it(
    isolated: IsolatedDecoder, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong: dict[str, list[str]] = {}
    spent: dict[str, tuple[float, int]] = {}
    for row in ROWS:
        forget_peak(isolated.pid)
        started = time.perf_counter()
        if found := faults(row, isolated):
            wrong[row["file"]] = found
        spent[row["file"]] = (time.perf_counter() - started, peak_bytes(isolated.pid) if isolated.pid else 0)
    slowest = max(spent, key=lambda name: spent[name][0])
    largest = max(spent, key=lambda name: spent[name][1])
    with capsys.disabled():
        print(
            f"\n{len(ROWS)} files in {sum(seconds for seconds, _ in spent.values()):.1f} s; at most "
            f"{spent[slowest][0]:.2f} s ({slowest}) and {spent[largest][1] / 2**20:.0f} MiB ({largest})"
        )
    assert not wrong, "\n".join(f"{name}: {'; '.join(found)}" for name, found in wrong.items())
    assert max(memory for _, memory in spent.values()) < LIMITS.memory


def test_the_table_and_the_folder_agree_and_cover_what_they_must() -> None:
    assert sorted(row["file"] for row in ROWS) == sorted(path.name for path in FOLDER.iterdir())
    assert len(ROWS) >= 150
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4 * 2**20
    # The other decoder has seen colours that differ from quarter to quarter, so a turned picture would show.
    whole = [row for row in ROWS if "quarters" in row]
    assert len(whole) > len(ROWS) / 2
    assert {row["by"] for row in whole} == {"imagemagick", "ffmpeg"}
