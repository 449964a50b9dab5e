"""What dying processes write is heard, and the reason is told from the words around it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.engine.last_words import LastWords

# As vLLM 0.32 words it, shortened.
OUTPUT = """\
(EngineCore pid=9) ERROR 11-30 19:53:13 [core.py:1520] RuntimeError: cancelled
(Worker pid=5971) ERROR 11-30 19:53:14 [multiproc_executor.py:953] WorkerProc failed to start.
(Worker pid=5971) ERROR 11-30 19:53:14 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker pid=5971) ERROR 11-30 19:53:14 [multiproc_executor.py:953]     raise RuntimeError(
(Worker pid=5971) ERROR 11-30 19:53:14 [multiproc_executor.py:953] RuntimeError: No weights in `/m`
(EngineCore pid=9) ERROR 11-30 19:53:15 [core.py:1510] Exception: WorkerProc initialization failed due to an \
exception in a background process. See stack trace for root cause.
ValueError: an aftermath
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def after_hearing(code: str, stream: int, capfd: pytest.CaptureFixture[str]) -> tuple[LastWords, str]:
    """What was heard of a process that runs `code`, and what still reached this process's own output."""
    words = LastWords()
    with words.heard():
        process = subprocess.Popen([sys.executable, "-c", code])
    os.write(stream, b"after\n")
    process.wait()
    deadline = time.monotonic() + 10
    shown = ""
    while "end" not in shown and time.monotonic() < deadline:
        shown += "".join(capfd.readouterr())
    return words, shown


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_reason_is_the_first_exception_that_points_to_no_other(
    stream: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "output").write_text(OUTPUT + "end\n")
    code = f"import sys; sys.{stream}.write(open({str(tmp_path / 'output')!r}).read())"
    words, shown = after_hearing(code, 1 if stream == "stdout" else 2, capfd)
    assert words.reason() == "RuntimeError: No weights in `/m`"
    assert OUTPUT in shown
    assert "after\n" in shown


def test_what_a_process_writes_long_after_its_start_is_heard(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import time; time.sleep(0.3); print('torch.OutOfMemoryError: CUDA out of memory.'); print('end')"
    words, _ = after_hearing(code, 1, capfd)
    assert words.reason() == "torch.OutOfMemoryError: CUDA out of memory."
    words.forget()
    assert words.reason() is None


def test_only_the_end_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    words, _ = after_hearing("print('ValueError: early'); print('x\\n' * 300000); print('end')", 1, capfd)
    assert words.reason() is None


def test_words_that_are_no_exception(capfd: pytest.CaptureFixture[str]) -> None:
    words, _ = after_hearing("print('0 errors: fine'); print('Error'); print('end')", 1, capfd)
    assert words.reason() is None
