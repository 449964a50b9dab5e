"""Files that must fail, each with its own code: cut, damaged, too large, or no picture at all."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np
import pillow_heif
from PIL import Image

from tests.media.making.case import Case, through
from tests.media.making.drawing import picture
from tests.media.making.moving import VP9, X264, encoded
from tests.media.making.stills import saved

CUT = ("decode_truncated",)
HURT = ("decode_corrupt", "decode_truncated")
NO_MEDIA = ("not_media",)
LARGE = ("too_large",)


def broken() -> Iterator[Case]:
    """Every case of this file."""
    yield from _cut_images()
    yield from _bombs()
    yield from _no_images()
    yield from _videos()


def _noisy() -> Image.Image:
    noise = np.random.default_rng(3).integers(-60, 60, (120, 160, 3))
    return Image.fromarray(np.clip(picture(160, 120) + noise, 0, 255).astype(np.uint8))


def _cut_images() -> Iterator[Case]:
    out = io.BytesIO()
    pillow_heif.from_pillow(_noisy()).save(out, quality=90)
    files = {
        kind: saved(_noisy(), kind)
        for kind in ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "JPEG2000", "AVIF")
    }
    files["progressive"] = saved(_noisy(), "JPEG", progressive=True)
    files["HEIC"] = out.getvalue()
    for kind, data in files.items():
        yield Case(f"cut.{kind.lower()}", f"{kind}, half of it", data[: len(data) // 2], codes=HURT)
        yield Case(f"head.{kind.lower()}", f"{kind}, its first 40 bytes", data[:40], codes=HURT)
    png = bytearray(files["PNG"])
    png[len(png) // 2] ^= 0xFF
    yield Case("hurt.png", "PNG, a byte changed in the middle", bytes(png), codes=HURT)
    yield Case("no-end-mark-refused.jpg", "JPEG without end marker, refused", files["JPEG"][:-2], codes=CUT)
    half = files["JPEG"][: len(files["JPEG"]) // 2]
    half = files["JPEG"][: len(files["JPEG"]) // 2]
    yield Case("cut-recover.jpg", "JPEG, half of it: too little to recover", half, codes=CUT, recover=True)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _bombs() -> Iterator[Case]:
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    body = _chunk(b"IDAT", zlib.compress(bytes(2**20))) + _chunk(b"IEND", b"")
    yield Case(
        "bomb.png", "PNG of 60,000 x 60,000 by its header", b"\x89PNG\r\n\x1a\n" + head + body, codes=LARGE
    )
    small = bytearray(saved(Image.new("RGB", (60, 40)), "TIFF"))
    tags = int.from_bytes(small[4:8], "little")
    for entry in range(int.from_bytes(small[tags : tags + 2], "little")):
        at = tags + 2 + 12 * entry
        if int.from_bytes(small[at : at + 2], "little") in {256, 257}:
            small[at + 2 : at + 12] = struct.pack("<HII", 4, 1, 60000)
    yield Case("bomb.tiff", "TIFF of 60,000 x 60,000 by its header", bytes(small), codes=LARGE)
    canvas = b"VP8X" + struct.pack("<II", 10, 0) + (16382).to_bytes(3, "little") * 2
    webp = saved(Image.new("RGB", (60, 40)), "WEBP", lossless=True)[12:]
    riff = b"RIFF" + struct.pack("<I", 4 + len(canvas) + len(webp)) + b"WEBP" + canvas + webp
    yield Case("bomb.webp", "WebP whose canvas is 16,383 x 16,383", riff, codes=(*LARGE, *HURT))
    gif = saved(Image.new("P", (60, 40)), "GIF")
    yield Case("bomb.gif", "GIF whose screen is 65,535 x 65,535", gif[:6] + b"\xff" * 4 + gif[10:], codes=LARGE)
    bmp = bytearray(saved(Image.new("RGB", (60, 40)), "BMP"))
    bmp[18:26] = struct.pack("<ii", 60000, 60000)
    yield Case("bomb.bmp", "BMP of 60,000 x 60,000 by its header", bytes(bmp), codes=(*LARGE, *CUT))
    jpeg = bytearray(saved(Image.new("RGB", (60, 40)), "JPEG"))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = struct.pack(">HH", 65500, 65500)
    yield Case("bomb.jpg", "JPEG of 65,500 x 65,500 by its header", bytes(jpeg), codes=LARGE)
    ppm = b"P6 70000 70000 255\n" + bytes(100)
    yield Case("bomb.ppm", "PPM of 70,000 x 70,000 by its header", ppm, codes=LARGE)
    # One letter, a hundred million times: 100 KB.
    text = _chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"a" * 10**8, 9))
    plain = saved(Image.fromarray(picture()), "PNG")
    yield Case("text-bomb.png", "PNG with 100 MB of text in 100 KB", plain[:33] + text + plain[33:], codes=HURT)


def _no_images() -> Iterator[Case]:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a.jpg", b"x")
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>"
    yield Case("drawing.svg", "SVG", svg, codes=("not_raster",))
    yield Case(
        "drawing-with-head.svg", "SVG with an XML head", b"<?xml version='1.0'?>\n" + svg, codes=("not_raster",)
    )
    yield Case("empty.jpg", "no bytes", b"", codes=("empty_file",))
    for name, kind, data in (
        ("page.jpg", "an HTML page", b"<!DOCTYPE html><html><body>404</body></html>"),
        (
            "denied.jpg",
            "an error of an object store",
            b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
        ),
        ("paper.jpg", "a PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"),
        ("text.jpg", "text", b"not a picture at all\n"),
        ("zeros.jpg", "zeros", bytes(500)),
        ("archive.jpg", "a ZIP archive", zipped.getvalue()),
        ("jxl.jxl", "JPEG XL", b"\xff\x0a" + bytes(range(60))),
        ("script.eps", "PostScript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"),
        (
            "pointer.jpg",
            "a Git LFS pointer",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        ),
        ("film.jpg", "a video in the role of an image", encoded("mp4", X264, frames=2)),
    ):
        yield Case(name, kind, data, codes=NO_MEDIA)


def _videos() -> Iterator[Case]:
    mp4, mkv, ts = (encoded(to, X264, frames=24) for to in ("mp4", "matroska", "mpegts"))
    fast = encoded("mp4", f"{X264} -movflags faststart", frames=24)

    def case(name: str, kind: str, data: bytes, codes: tuple[str, ...] = (), **options: object) -> Case:
        return Case(name, kind, data, role="video", by="ffmpeg", codes=codes, **options)  # type: ignore[arg-type]

    yield case("cut.mp4", "MP4 without its index", mp4[: len(mp4) // 2], CUT)
    yield case("cut-fast.mp4", "MP4 with its index, half of its frames", fast[: len(fast) * 6 // 10], CUT)
    yield case("cut.mkv", "Matroska, half of it", mkv[: len(mkv) // 2], HURT)
    hurt = bytearray(mp4)
    middle = mp4.index(b"mdat") + (mp4.index(b"moov") - mp4.index(b"mdat")) // 2
    hurt[middle - 300 : middle + 300] = bytes(600)
    yield case("hurt.mp4", "MP4, damaged in its middle", bytes(hurt), HURT, sampling={"num_frames": 24})
    yield case("cut.ts", "MPEG-TS, its first packets only", ts[: 188 * 4], (*HURT, *NO_MEDIA))
    sound = ("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=d=0.5")
    for name, options in (("m4a", "-f mp4"), ("mp3", "-f mp3"), ("wav", "-f wav"), ("mka", "-f matroska")):
        yield case(f"sound.{name}", "sound only", through(*sound, *options.split(), "OUT"), NO_MEDIA)
    cover = through(
        *sound, "-f", "lavfi", "-i", "color=c=red:s=64x64:d=0.04", "-map", "0", "-map", "1", "-c:v", "mjpeg",
        "-frames:v", "1", "-disposition:v:0", "attached_pic", "-f", "mp4", "OUT",
    )  # fmt: skip
    yield case("cover.m4a", "sound with a picture of its cover", cover, NO_MEDIA)
    parts = encoded("mp4", f"{X264} -movflags frag_keyframe+empty_moov", frames=2)
    yield case("no-frames.mp4", "MP4 without frames", parts[: parts.index(b"moof") - 4], NO_MEDIA)
    yield case("empty.mp4", "no bytes", b"", ("empty_file",))
    yield case("text.mp4", "text", b"this is no film\n" * 9, NO_MEDIA)
    yield case(
        "playlist.mp4",
        "a playlist that names other files",
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
        NO_MEDIA,
    )
    yield case("list.mp4", "a list for ffmpeg's concat", b"ffconcat version 1.0\nfile /etc/passwd\n", NO_MEDIA)
    yield case(
        "still.png", "a still PNG in the role of a video", saved(Image.fromarray(picture()), "PNG"), NO_MEDIA
    )
    yield case(
        "still.jpg", "a JPEG in the role of a video", saved(Image.fromarray(picture()), "JPEG"), NO_MEDIA
    )
    webm = encoded("webm", VP9, frames=24)
    yield case("cut.webm", "WebM, half of it", webm[: len(webm) // 2], HURT)
    yield from _large_videos()


def _large_videos() -> Iterator[Case]:
    data = bytearray(encoded("mp4", X264, frames=2))
    entry = data.index(b"avc1", data.index(b"stsd")) + 4
    data[entry + 24 : entry + 28] = struct.pack(">HH", 65500, 65500)
    yield Case("bomb.mp4", "MP4 of 65,500 x 65,500 by its header", bytes(data), role="video", codes=LARGE)
    frames = [Image.new("RGB", (60, 40)), Image.new("RGB", (60, 40), "red")]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=100)
    gif = out.getvalue()
    large = gif[:6] + b"\xff" * 4 + gif[10:]
    yield Case("bomb-film.gif", "GIF film of 65,535 x 65,535", large, role="video", codes=(*LARGE, *HURT))
