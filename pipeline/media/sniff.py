"""What some bytes look like, by their first few: to say in plain words what came instead of media."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pipeline.media import boxes

_HEAD = 2048
_MPEG_TS_PACKET = 188
_M2TS_PACKET = 192

_SIGNATURES: list[tuple[bytes, str, str]] = [
    (b"\xff\xd8", "image", "JPEG image"),
    (b"\x89PNG", "image", "PNG image"),
    (b"GIF8", "image", "GIF image"),
    (b"BM", "image", "BMP image"),
    (b"II*\0", "image", "TIFF image"),
    (b"MM\0*", "image", "TIFF image"),
    (b"\0\0\0\x0cjP", "image", "JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "image", "JPEG 2000 image"),
    (b"\0\0\1\0", "image", "ICO image"),
    (b"qoif", "image", "QOI image"),
    (b"\xff\x0a", "image", "JPEG XL image"),
    (b"\0\0\0\x0cJXL ", "image", "JPEG XL image"),
    (b"\x1a\x45\xdf\xa3", "video", "Matroska or WebM video"),
    (b"FLV", "video", "FLV video"),
    (b"OggS", "video", "Ogg file"),
    (b"\0\0\1\xba", "video", "MPEG program stream"),
    (b"\0\0\1\xb3", "video", "MPEG video"),
    (b"\x30\x26\xb2\x75", "video", "WMV or ASF video"),
    (b"ID3", "audio", "MP3 audio"),
    (b"\xff\xfb", "audio", "MP3 audio"),
    (b"\xff\xf3", "audio", "MP3 audio"),
    (b"fLaC", "audio", "FLAC audio"),
    (b"%PDF", "document", "PDF document"),
    (b"%!PS", "document", "PostScript document"),
    (b"\xc5\xd0\xd3\xc6", "document", "PostScript document"),  # EPS with a preview for DOS
    (b"PK\3\4", "other", "ZIP archive"),
    (b"\x1f\x8b", "other", "gzip archive"),
    (b"version https://git-lfs", "other", "Git LFS pointer, not the file itself"),
]
_TEXTS: list[tuple[str, str]] = [
    (r"<!doctype html|<html|<head|<body", "HTML page"),
    (r"<\?xml|<error>", "XML document"),
    (r"[{\[]", "JSON text"),
]
_IMAGE_BRANDS = {b"avif": "AVIF image", b"avis": "AVIF image"} | dict.fromkeys(
    (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"), "HEIC image"
)
_MOVIE_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"moof", b"styp"}


@dataclass(frozen=True)
class Kind:
    """What bytes look like: a family to decide by, and a name for people ("HTML page")."""

    family: Literal["image", "video", "audio", "document", "other"]
    name: str


def looks_like(data: bytes) -> Kind:
    """Return what `data` looks like by its first bytes; family `other` when it is no kind of media."""
    for signature, family, name in _SIGNATURES:
        if data.startswith(signature):
            return Kind(family, name)  # type: ignore[arg-type]
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], Kind("other", "RIFF file of an unknown sort"))
    if re.match(rb"P[1-7fF]\s", data):
        return Kind("image", "PNM image")
    if data[4:8] in _MOVIE_BOXES:
        return _iso(data)
    for packet, at in ((_MPEG_TS_PACKET, 0), (_M2TS_PACKET, 4)):
        if len(data) > at + 2 * packet and all(data[at + n * packet] == 0x47 for n in range(3)):
            return Kind("video", "MPEG transport stream")
    if b"\n%PDF-" in data[:1024] and not data.lstrip().startswith(b"<"):  # behind what a mail server left there
        return Kind("document", "PDF document")
    return _text(data) or Kind("other", "only zero bytes" if not data.strip(b"\0") else "no format known here")


_RIFF = {
    b"WEBP": Kind("image", "WebP image"),
    b"AVI ": Kind("video", "AVI video"),
    b"WAVE": Kind("audio", "WAV audio"),
}


def _iso(data: bytes) -> Kind:
    brand = data[8:12] if data[4:8] == b"ftyp" else b""
    if brand in _IMAGE_BRANDS:
        return Kind("image", _IMAGE_BRANDS[brand])
    if brand in {b"M4A ", b"M4B "}:
        return Kind("audio", "M4A audio")
    return Kind("video", "MP4 or MOV video")


def _text(data: bytes) -> Kind | None:
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    if not head.strip() or any(byte < 0x20 and byte not in b"\t\n\r\f\x1b" for byte in head):
        return None
    text = head.decode("utf-8", "replace").strip()
    if text.count("\ufffd") > 1 + len(text) // 10:
        return None
    if "<Error>" in text and (code := re.search(r"<Code>(\w{1,40})</Code>", text)):
        return Kind("other", f"error of an object store ({code[1]})")
    lower = text.lower()
    if "<svg" in lower and "<html" not in lower and lower.startswith("<"):
        return Kind("other", "SVG drawing")
    for pattern, name in _TEXTS:
        if re.match(pattern, text, re.IGNORECASE) or (name == "HTML page" and "<html" in lower):
            return Kind("other", name)
    return Kind("other", "text")


_CLOSING_MARKS = [
    (b"\xff\xd8", b"\xff\xd9"),
    (b"\x89PNG", b"IEND\xae\x42\x60\x82"),
    (b"GIF8", b";"),
]


def is_cut_short(data: bytes) -> bool:
    """Whether the file says by its own structure that bytes are missing at its end.

    False where the format cannot tell. Formats that close with a mark (JPEG, PNG, GIF) may rightly go on
    after it or lack it, so for these ask only once decoding has failed.
    """
    for start, mark in _CLOSING_MARKS:
        if data.startswith(start):
            return mark not in data.rstrip(b"\0")[-len(mark) :]
    if data.startswith(b"BM"):
        return int.from_bytes(data[2:6], "little") > len(data)
    if data.startswith(b"RIFF"):
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return _matroska_is_cut(data)
    return data[4:8] in _MOVIE_BOXES and boxes.is_cut(data)


def _matroska_is_cut(data: bytes) -> bool:
    size, at = _ebml_size(data, 4)
    at += size or 0
    if data[at : at + 4] != b"\x18\x53\x80\x67":  # Segment
        return at + 4 > len(data)
    size, at = _ebml_size(data, at + 4)
    return size is not None and at + size > len(data)


def _ebml_size(data: bytes, at: int) -> tuple[int | None, int]:
    """Return (size, where the content starts); the size is None when the writer did not know it."""
    first = data[at] if at < len(data) else 0
    length = 9 - first.bit_length()
    if length > 8:
        return None, at + 1
    value = int.from_bytes(data[at : at + length], "big") - (1 << (7 * length))
    return (None if value == (1 << (7 * length)) - 1 else value), at + length
