"""Tars for the tests, by the tar of the system, and headers that no honest program writes."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path


def write_tar(path: Path, members: Mapping[str, bytes], form: str = "gnu") -> None:
    """Pack members, in their order, with the system's tar (GNU): `form` is its --format."""
    folder = path.with_name(f".{path.name}.members")
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    names = folder / ".names"
    names.write_text("\n".join(members))
    command = ["tar", f"--format={form}", "-cf", path, "-C", folder, "--no-recursion", "-T", names]
    subprocess.run(command, check=True)


def entry(
    name: str, data: bytes = b"", *, size: int | None = None, kind: bytes = b"0", link: str = ""
) -> bytes:
    """One entry with its header and padded payload; `size` is what the header says of it."""
    info = tarfile.TarInfo(name)
    info.size = len(data) if size is None else size
    info.type = kind
    info.linkname = link
    header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return header + data + bytes(-len(data) % 512)


def raw_header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """A header with exactly these fields and a right checksum."""
    fields = [
        name.ljust(100, b"\0"), b"0000644\0", b"0000000\0", b"0000000\0", size.ljust(12, b"\0"),
        b"00000000000\0", b" " * 8, kind, bytes(100), b"ustar\00000",
    ]  # fmt: skip
    header = b"".join(fields).ljust(512, b"\0")
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


END = bytes(1024)


def python_tar(members: Mapping[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """Pack members with Python's tarfile."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return sink.getvalue()
