"""Files that kill, hang or fill the process that decodes them: each costs itself, and leaves no child."""

import errno
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.media import child, wire
from pipeline.media.child import Child
from pipeline.media.isolated import IsolatedDecoder, Limits
from tests.media import crashers
from tests.media.made import saved
from tests.media.test_deep import tiff

MiB = 2**20
LIMITS = Limits(seconds=20, memory=2048 * MiB)


@pytest.fixture
def isolated() -> Iterator[IsolatedDecoder]:
    decoder = IsolatedDecoder()
    yield decoder
    decoder.close()


def decode(
    isolated: IsolatedDecoder, decoder: Callable[..., Any], data: bytes = b"\1\2\3", limits: Limits = LIMITS
) -> tuple[np.ndarray, dict[str, Any] | None]:
    return isolated.decode(decoder, data, {}, limits)


def failure(isolated: IsolatedDecoder, decoder: Any, data: bytes = b"", limits: Limits = LIMITS) -> ItemError:
    with pytest.raises(ItemError) as caught:
        decode(isolated, decoder, data, limits)
    pixels, _ = decode(isolated, crashers.size)  # whatever happened, the next item is decoded
    assert pixels.ravel().tolist() == [1, 2, 3]
    return caught.value


# --- what goes through --------------------------------------------------------------------------------------


def test_pixels_and_metadata_come_back_as_they_were(isolated: IsolatedDecoder) -> None:
    data = np.random.default_rng(0).bytes(5_000_001)
    pixels, metadata = isolated.decode(crashers.size, data, {"an_option": 1}, LIMITS)
    assert (pixels.dtype, pixels.shape, metadata) == (np.uint8, (1, 5_000_001, 1), None)
    assert pixels.tobytes() == data
    assert pixels.flags.writeable
    assert decode(isolated, crashers.pid)[1] == {"pid": isolated.pid}
    assert isolated.pid != os.getpid()


def test_one_child_serves_many_items_and_keeps_nothing_of_them(isolated: IsolatedDecoder) -> None:
    decode(isolated, crashers.size)
    first, files = isolated.pid, len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        decode(isolated, crashers.size, bytes(MiB))
        with pytest.raises(ItemError):
            decode(isolated, crashers.refuse)
    gc.collect()
    assert isolated.pid == first
    assert len(os.listdir("/proc/self/fd")) == files
    assert len(os.listdir(f"/proc/{first}/fd")) < 12


def test_the_memory_of_a_long_clip_is_given_back(isolated: IsolatedDecoder) -> None:
    pixels = decode(isolated, crashers.size, bytes(80 * MiB) + b"\7")[0]
    assert (pixels.size, pixels[0, -1, 0]) == (80 * MiB + 1, 7)
    assert [os.fstat(slot.fileno()).st_size for slot in isolated._slots] == [0, wire._KEPT]
    small, _ = decode(isolated, crashers.size)
    assert small.ravel().tolist() == [1, 2, 3]
    assert not pixels[0, :-1].any()  # what came first is not touched by what comes later


def test_what_a_decoder_raises_is_raised_here(isolated: IsolatedDecoder) -> None:
    decode(isolated, crashers.size)
    child = isolated.pid
    error = failure(isolated, crashers.refuse, b"1234")
    assert (error.code, error.reason) == (Code.NOT_MEDIA, "4 bytes of something else")
    error = failure(isolated, crashers.fail)
    assert error.code is Code.DECODE_CRASH
    assert "ZeroDivisionError('in the decoder')" in error.reason
    assert "if every file fails so, report it" in error.reason
    assert isolated.pid == child


def test_threads_take_turns(isolated: IsolatedDecoder) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: decode(isolated, crashers.size, bytes([n]) * 1000)[0], range(64))
        assert [set(pixels.ravel().tolist()) for pixels in found] == [{n} for n in range(64)]


def test_a_decoder_that_cannot_be_imported_is_no_fault_of_the_item(isolated: IsolatedDecoder) -> None:
    with pytest.raises(RuntimeError, match="no_such_module"):
        decode(isolated, crashers.need)


def test_a_child_that_cannot_start_is_no_fault_of_the_item(
    isolated: IsolatedDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="does not start"):
        decode(isolated, crashers.size)


# --- death --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGBUS])
def test_a_decoder_that_dies(isolated: IsolatedDecoder, kind: signal.Signals) -> None:
    error = failure(isolated, crashers.die, str(int(kind)).encode())
    assert error.code is Code.DECODE_CRASH
    assert kind.name in error.reason
    assert not error.code.retryable


def test_a_library_that_ends_the_process(isolated: IsolatedDecoder) -> None:
    error = failure(isolated, crashers.exit_by_itself)
    assert error.code is Code.DECODE_CRASH
    assert "exit status 3" in error.reason


def test_a_death_with_a_large_file_not_yet_read(isolated: IsolatedDecoder) -> None:
    decode(isolated, crashers.size)
    assert isolated.pid is not None
    os.kill(isolated.pid, signal.SIGKILL)  # while idle: no item's fault
    assert decode(isolated, crashers.size, bytes(20 * MiB))[0].shape == (1, 20 * MiB, 1)


def test_an_item_is_not_blamed_for_what_an_earlier_one_did(isolated: IsolatedDecoder) -> None:
    decode(isolated, crashers.poison)
    poisoned = isolated.pid
    assert decode(isolated, crashers.die_once)[0].shape == (1, 3, 1)
    assert isolated.pid != poisoned


def test_items_of_many_threads_pay_only_for_themselves(isolated: IsolatedDecoder) -> None:
    """While one kills, hangs or fills the child, the next one is in its hands already."""
    death = str(int(signal.SIGSEGV)).encode()
    jobs: list[tuple[Any, bytes, Limits, str]] = []
    for number in range(6):
        jobs += [(crashers.size, bytes([number]) * 300_000, LIMITS, "ok")] * 4
        jobs += [(crashers.refuse, b"", LIMITS, "not_media"), (crashers.die, death, LIMITS, "decode_crash")]
    jobs += [(crashers.sleep_for_ever, b"", Limits(0.5, LIMITS.memory), "decode_timeout")] * 2
    jobs += [(crashers.fill_memory, b"", Limits(60, 400 * MiB), "too_large")] * 2
    jobs += [(crashers.size, b"\1" * 100, LIMITS, "ok")] * 8

    def outcome(job: tuple[Any, bytes, Limits, str]) -> str:
        decoder, data, limits, _ = job
        try:
            pixels, _ = isolated.decode(decoder, data, {}, limits)
        except ItemError as error:
            return error.code.value
        return "ok" if pixels.tobytes() == data else "wrong pixels"

    order = np.random.default_rng(0).permutation(len(jobs))
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(outcome, [jobs[k] for k in order]))
    assert found == [jobs[k][3] for k in order]
    assert sorted(isolated._free) == [0, 1]


def test_a_file_that_cannot_be_sent_leaves_nothing_behind(isolated: IsolatedDecoder) -> None:
    decode(isolated, crashers.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "write_memory", no_space)
        with pytest.raises(OSError, match="No space"):
            decode(isolated, crashers.size)
    assert decode(isolated, crashers.size)[0].shape == (1, 3, 1)
    assert sorted(isolated._free) == [0, 1]


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_next_file_is_sent_while_one_is_decoded(isolated: IsolatedDecoder, tmp_path: Path) -> None:
    """The first file waits for the second to have been sent; alone it would wait for ever."""
    flag = tmp_path / "sent"
    sent = Child.send

    def telling(self: Child, slot: int, job: bytes, data: bytes) -> None:
        sent(self, slot, job, data)
        flag.write_text("sent") if self.sent == 2 else None

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(Child, "send", telling)
        first = pool.submit(decode, isolated, crashers.wait_for_file, str(flag).encode())
        second = pool.submit(decode, isolated, crashers.size)
        assert second.result()[0].shape == (1, 3, 1)
        assert first.result()[0].shape == (1, len(str(flag)), 1)


# --- time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", [crashers.sleep_for_ever, crashers.loop_in_c])
def test_a_decoder_that_never_ends(isolated: IsolatedDecoder, decoder: Any) -> None:
    decode(isolated, crashers.size)
    child = isolated.pid
    started = time.monotonic()
    error = failure(isolated, decoder, limits=Limits(0.5, LIMITS.memory))
    assert 0.5 <= time.monotonic() - started < 10
    assert error.code is Code.DECODE_TIMEOUT
    assert "0.5 s" in error.reason
    assert not Path(f"/proc/{child}").exists()


# --- memory -------------------------------------------------------------------------------------------------


def test_a_decoder_that_takes_all_memory(isolated: IsolatedDecoder) -> None:
    error = failure(isolated, crashers.fill_memory, limits=Limits(60, 400 * MiB))
    assert error.code is Code.TOO_LARGE
    assert "419,430,400" in error.reason


def test_memory_that_ends_on_a_side_way_is_not_taken_for_damage(isolated: IsolatedDecoder) -> None:
    floats = tiff(2, 1, 32, 3, bytes(24))
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    cut = saved(Image.fromarray(noise), "JPEG")[:-40]
    for decoder, data in (
        (crashers.short_of_memory_in_floats, floats),
        (crashers.short_of_memory_in_completing, cut),
    ):
        isolated.close()  # a fresh child: its item is to blame
        error = failure(isolated, decoder, data)
        assert error.code is Code.TOO_LARGE
        assert "media.decode_memory" in error.reason


def test_memory_that_earlier_items_leaked_is_no_fault_of_the_next(isolated: IsolatedDecoder) -> None:
    pids = set()
    for _ in range(8):  # 128 MiB each
        decode(isolated, crashers.leak, limits=Limits(60, 500 * MiB))
        pids.add(isolated.pid)
    assert 2 <= len(pids) < 8


# --- the worker's end ---------------------------------------------------------------------------------------

WORKER = """
import sys
from pipeline.media.isolated import Limits, decode_isolated
from tests.media import crashers
decode_isolated(getattr(crashers, sys.argv[1]), sys.argv[2].encode(), {}, Limits(float(sys.argv[3]), 2**31))
"""


@pytest.mark.parametrize(
    ("decoder", "seconds", "gone_after"),
    # Asleep it hears of the worker's death at once; in C only the kernel ends it, at its time limit.
    [("sleep_for_ever", "60", 5), ("loop_in_c", "3", 8)],
)
def test_a_child_does_not_outlive_a_killed_worker(
    tmp_path: Path, decoder: str, seconds: str, gone_after: float
) -> None:
    told = tmp_path / "pid"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, decoder, str(told), seconds])
    try:
        wait_for(lambda: told.exists() and told.read_text() != "", 30)
    finally:
        worker.kill()
        worker.wait()
    child = Path("/proc", told.read_text())
    wait_for(lambda: not child.exists() or "Z" in (child / "stat").read_text().split()[2], gone_after)


def test_a_worker_that_ends_in_good_order_leaves_no_child_and_no_message() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER, "size", "abc", "60"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "too late"
        time.sleep(0.05)
