"""The headers of a tar, by their first bytes alone where that will do."""

from __future__ import annotations

from tarfile import TarInfo

from pipeline.manifest.window import Window

BLOCK = 512
BRIEF = 160
"""Name, size, checksum and type are in the first 157 bytes of a header; behind are owners, and the first part
of a name of more than 100 bytes."""

FILES = frozenset({b"0", b"\0", b"7"})


class Headers:
    """Reads headers through a window, which decides how much it fetches for each: BRIEF bytes at least.

    What is read in brief has its checksum checked for plausibility only; a run reads all of it again. Tars
    whose names have first parts are read in full.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._least = BLOCK
        self._prefixed = False

    def at(self, offset: int) -> TarInfo | None:
        """The header at the offset; None if the block there is an end mark.

        Raises:
            tarfile.HeaderError: there is no header.
            EOFError: the tar ends before the header does.
        """
        if offset + BLOCK > self._window.stop:
            raise EOFError(f"at byte {offset} there are less than {BLOCK} bytes left")
        data = self._window.read_some(offset, self._least, BLOCK)
        if len(data) < BLOCK and data[156:157] in FILES and (whole := _completed(data)):
            return TarInfo.frombuf(whole, "utf-8", "surrogateescape")
        data = self._window.read(offset, BLOCK)
        if data == bytes(BLOCK):
            return None
        info = TarInfo.frombuf(data, "utf-8", "surrogateescape")
        self._prefixed = self._prefixed or any(data[345:500])
        self._least = BLOCK if self._prefixed else BRIEF
        return info


def _completed(data: bytes) -> bytes | None:
    """The first bytes of a header with zeros behind them and a checksum that fits; None if it cannot be one."""
    known = sum(data[:148]) + 8 * ord(" ") + sum(data[156:])
    try:
        claimed = int(data[148:156].strip(b" \0"), 8)
    except ValueError:
        return None
    if not 0 <= claimed - known <= 255 * (BLOCK - len(data)):
        return None
    return (data[:148] + b"%06o\0 " % known + data[156:]).ljust(BLOCK, b"\0")
