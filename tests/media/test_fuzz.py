"""The short form of `benchmarks.fuzz_media`: two damaged copies of each file of the corpus."""

import pytest

from benchmarks.fuzz_media import LIMITS, fuzz


def test_damaged_files_have_a_code_and_leave_the_worker_alive(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = fuzz(each=2, seed=1)
    with capsys.disabled():
        print("\n" + outcome.told())
    assert not outcome.uncoded
    assert sum(outcome.codes.values()) > 500
    assert outcome.peak[0] < LIMITS.memory
    # The damage is neither too little nor too much: some are decoded, most are refused for what they are.
    assert outcome.codes["decoded"] > 50
    assert outcome.codes["decode_truncated"] > 50
    assert outcome.codes["decode_corrupt"] > 50
