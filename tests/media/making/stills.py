"""Whole images of every kind, by Pillow, ImageMagick, libjpeg's cjpeg and libheif."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
from PIL import Image

from tests.media.making.case import Case, through
from tests.media.making.drawing import deep_picture, picture
from tests.media.making.icc import press_profile

PROFILES = Path("/usr/share/color/icc")


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The file that Pillow makes."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def base() -> Image.Image:
    """The picture of most files."""
    return Image.fromarray(picture())


def magick(*options: str, to: str, deep: bool = False) -> bytes:
    """The file that ImageMagick makes of the picture; `to` is its name of the format."""
    pixels = deep_picture().astype(">u2").tobytes() if deep else picture().tobytes()
    depth = ["-depth", "16", "-endian", "MSB"] if deep else ["-depth", "8"]
    return through("convert", "-size", "60x40", *depth, "rgb:IN", *options, f"{to}:OUT", data=pixels)


def seen_through() -> Image.Image:
    """The picture with alpha from left to right, and bright colours hidden where it is 0."""
    alpha = np.clip(np.linspace(-80, 335, 60), 0, 255).astype(np.uint8)[None].repeat(40, 0)
    return Image.fromarray(np.dstack([picture(), alpha]))


def separated() -> Image.Image:
    """The picture as inks, with half of what is grey in it printed in black."""
    inks = 255 - picture().astype(int)
    black = inks.min(axis=-1, keepdims=True) // 2
    return Image.fromarray(np.concatenate([inks - black, black], axis=-1).astype(np.uint8), "CMYK")


def stills() -> Iterator[Case]:
    """Every case of this file."""
    yield from _orientations()
    yield from _jpegs()
    yield from _pngs()
    yield from _tiffs()
    yield from _profiles()
    yield from _others()


def _orientations() -> Iterator[Case]:
    for kind, options in (("JPEG", {"quality": 95}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            data = saved(base(), kind, exif=exif, **options)
            name = f"exif-{orientation}.{kind.lower()}"
            yield Case(name, f"{kind} with EXIF orientation {orientation}", data, orientation=orientation)


def _jpegs() -> Iterator[Case]:
    ppm = magick(to="ppm")
    for name, options in {
        "444": ["-sample", "1x1"],
        "420": ["-sample", "2x2"],
        "422": ["-sample", "2x1"],
        "progressive": ["-progressive"],
        "arithmetic": ["-arithmetic"],
        "arithmetic-progressive": ["-arithmetic", "-progressive"],
        "restarts": ["-restart", "1"],
        "rgb-not-ycc": ["-rgb"],
        "grey": ["-grayscale"],
    }.items():
        data = through("cjpeg", "-quality", "95", *options, "-outfile", "OUT", "IN", data=ppm)
        yield Case(f"{name}.jpg", f"JPEG, {name}", data)
    adobe = saved(base().convert("CMYK"), "JPEG", quality=95)
    yield Case("cmyk-adobe.jpg", "JPEG, CMYK, inverted as Adobe does", adobe)
    at = adobe.index(b"\xff\xee\x00\x0eAdobe")
    yield Case("cmyk-plain.jpg", "JPEG, CMYK without Adobe's marker", adobe[:at] + adobe[at + 16 :])
    jpeg = saved(base(), "JPEG", quality=95)
    yield Case("rubbish-after.jpg", "JPEG with bytes after its end", jpeg + b"rubbish" * 9)
    two = saved(base(), "MPO", save_all=True, append_images=[Image.new("RGB", (60, 40))], quality=95)
    yield Case("two-views.mpo", "MPO: two JPEGs, the first is meant", two, format="jpg")
    photo = np.random.default_rng(2).normal(0, 20, (400, 600, 3)) + picture(600, 400)
    large = saved(Image.fromarray(np.clip(photo, 0, 255).astype(np.uint8)), "JPEG", quality=60)
    yield Case("noisy.jpg", "JPEG of some size", large)
    yield Case("no-end-mark.jpg", "JPEG without end marker, accepted", jpeg[:-2], recover=True)
    yield Case(
        "nearly-whole.jpg",
        "JPEG without its last rows, accepted",
        large[: len(large) * 99 // 100],
        recover=True,
    )


def _pngs() -> Iterator[Case]:
    grey = base().convert("L")
    for depth in (1, 2, 4, 8, 16):
        data = magick("-colorspace", "Gray", "-define", f"png:bit-depth={depth}", "-define", "png:color-type=0",
                      "-depth", str(depth), to="png", deep=depth == 16)  # fmt: skip
        yield Case(f"grey-{depth}.png", f"PNG, grey of {depth} bits", data)
    for depth in (1, 2, 4, 8):
        data = saved(base().quantize(2**depth), "PNG", bits=depth)
        yield Case(f"palette-{depth}.png", f"PNG, palette of {depth} bits", data)
    yield Case("palette-trns.png", "PNG, palette with tRNS", saved(seen_through().quantize(60), "PNG"))
    yield Case("rgb-16.png", "PNG, 16-bit RGB", magick(to="png48", deep=True))
    half = ["-alpha", "set", "-channel", "A", "-evaluate", "set", "40%"]
    yield Case("rgba-16.png", "PNG, 16-bit RGBA", magick(*half, to="png64", deep=True))
    la16 = magick("-colorspace", "Gray", *half, "-define", "png:color-type=4", "-define", "png:bit-depth=16",
                  to="png", deep=True)  # fmt: skip
    yield Case("la-16.png", "PNG, 16-bit grey with alpha", la16)
    yield Case("rgba.png", "PNG, RGBA with hidden colours", saved(seen_through(), "PNG"))
    yield Case("la.png", "PNG, grey with alpha", saved(seen_through().convert("LA"), "PNG"))
    corner = tuple(int(v) for v in picture()[0, 0])
    yield Case("rgb-trns.png", "PNG, RGB with a see-through colour", saved(base(), "PNG", transparency=corner))
    level = int(np.asarray(grey)[5, 5])
    yield Case("grey-trns.png", "PNG, grey with a see-through level", saved(grey, "PNG", transparency=level))
    bits = saved(base().convert("1"), "PNG", transparency=0)
    yield Case("one-bit-trns.png", "PNG, 1 bit with see-through black", bits)
    yield Case("interlaced.png", "PNG, interlaced", magick("-interlace", "PNG", to="png24"))
    yield Case(
        "interlaced-16.png", "PNG, interlaced, 16-bit RGB", magick("-interlace", "PNG", to="png48", deep=True)
    )


def _tiffs() -> Iterator[Case]:
    for name, deep, options in (
        ("none", False, ["-compress", "none"]),
        ("lzw", False, ["-compress", "lzw"]),
        ("zip", False, ["-compress", "zip"]),
        ("packbits", False, ["-compress", "rle"]),
        ("jpeg", False, ["-compress", "jpeg", "-quality", "95"]),
        ("lzma", False, ["-compress", "lzma"]),
        ("planar", False, ["-interlace", "plane"]),
        ("big-endian", False, ["-define", "tiff:endian=msb"]),
        ("tiled", False, ["-define", "tiff:tile-geometry=32x32"]),
        ("cmyk", False, ["-colorspace", "CMYK"]),
        ("palette", False, ["-type", "Palette"]),
        ("grey", False, ["-colorspace", "Gray"]),
        ("rgb-16", True, ["-compress", "none"]),
        ("rgb-16-lzw", True, ["-compress", "lzw", "-define", "tiff:predictor=2"]),
        ("rgb-16-planar", True, ["-compress", "none", "-interlace", "plane"]),
        ("rgb-16-big-endian", True, ["-compress", "none", "-define", "tiff:endian=msb"]),
        ("rgb-16-tiled", True, ["-define", "tiff:tile-geometry=32x32"]),
        ("rgba-16", True, ["-alpha", "set", "-channel", "A", "-evaluate", "set", "40%"]),
        ("grey-16", True, ["-colorspace", "Gray", "-depth", "16"]),
        ("float-rgb", True, ["-define", "quantum:format=floating-point", "-depth", "32", "-compress", "zip"]),
        (
            "float-grey",
            True,
            [
                "-colorspace",
                "Gray",
                "-define",
                "quantum:format=floating-point",
                "-depth",
                "32",
                "-compress",
                "zip",
            ],
        ),
    ):
        yield Case(f"{name}.tif", f"TIFF, {name}", magick(*options, to="tiff", deep=deep))
    yield Case("bigtiff.tif", "BigTIFF", magick(to="tiff64"))
    one = base().convert("1")
    for how in ("group3", "group4"):
        yield Case(f"{how}.tif", f"TIFF, 1 bit, {how}", saved(one, "TIFF", compression=how))
    white = magick("-monochrome", "-define", "quantum:polarity=min-is-white", "-compress", "none", to="tiff")
    yield Case("white-is-zero.tif", "TIFF, 1 bit, white is zero", white)
    pages = saved(
        base(), "TIFF", save_all=True, append_images=[Image.new("RGB", (20, 20)), Image.new("L", (9, 9))]
    )
    yield Case("pages.tif", "TIFF of three pages: the first", pages)


def _profiles() -> Iterator[Case]:
    adobe = (PROFILES / "compatibleWithAdobeRGB1998.icc").read_bytes()
    for kind, options in (("JPEG", {"quality": 95}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        data = saved(base(), kind, icc_profile=adobe, **options)
        yield Case(f"wide-colours.{kind.lower()}", f"{kind} with the ICC profile of wider colours", data)
    srgb = (PROFILES / "sRGB.icc").read_bytes()
    yield Case("srgb-profile.jpg", "JPEG with an ICC profile of sRGB", saved(base(), "JPEG", icc_profile=srgb))
    for name in ("Gray", "Gray-CIE_L"):
        profile = (PROFILES / f"{name}.icc").read_bytes()
        grey = base().convert("L")
        yield Case(f"{name.lower()}.png", f"PNG, grey, ICC {name}", saved(grey, "PNG", icc_profile=profile))
    inks = {"icc_profile": press_profile()}
    yield Case(
        "cmyk-profile.jpg", "JPEG, CMYK with an ICC profile", saved(separated(), "JPEG", quality=95, **inks)
    )
    yield Case("cmyk-profile.tif", "TIFF, CMYK with an ICC profile", saved(separated(), "TIFF", **inks))
    broken = saved(base(), "JPEG", icc_profile=adobe[:200], quality=95)
    yield Case("broken-profile.jpg", "JPEG whose profile is cut: ignored", broken)


def _others() -> Iterator[Case]:
    yield Case("plain.gif", "GIF", saved(base().quantize(64), "GIF"))
    yield Case("interlaced.gif", "GIF, interlaced", magick("-interlace", "GIF", to="gif"))
    yield Case("gif87.gif", "GIF 87a", magick(to="gif87"))
    clear = Image.fromarray(np.where(np.arange(60)[None, :] < 30, 0, 1).astype(np.uint8).repeat(40, 0), "P")
    clear.putpalette([255, 0, 0, 30, 60, 200])
    yield Case("see-through.gif", "GIF with a see-through colour", saved(clear, "GIF", transparency=0))
    yield Case("lossy.webp", "WebP, lossy", saved(base(), "WEBP", quality=95))
    yield Case("lossless.webp", "WebP, lossless", saved(base(), "WEBP", lossless=True))
    yield Case(
        "alpha.webp", "WebP with hidden colours", saved(seen_through(), "WEBP", lossless=True, exact=True)
    )
    for depth, options in {
        "24": ["-type", "TrueColor"],
        "8": ["-type", "Palette"],
        "1": ["-monochrome"],
    }.items():
        yield Case(f"{depth}.bmp", f"BMP of {depth} bits", magick(*options, to="bmp3"))
    yield Case("rle.bmp", "BMP, packed", magick("-type", "Palette", "-compress", "RLE", to="bmp3"))
    yield Case("rgba.bmp", "BMP of 32 bits", saved(base().convert("RGBA"), "BMP"))
    yield Case("icon.ico", "ICO", saved(base().resize((48, 48)), "ICO", sizes=[(48, 48)]), format="ico")
    yield Case("plain.qoi", "QOI", saved(base(), "QOI"), by="ffmpeg", format="qoi_pipe")
    for mode, name in (("1", "pbm"), ("L", "pgm"), ("RGB", "ppm")):
        yield Case(f"plain.{name}", name.upper(), saved(base().convert(mode), "PPM"))
        text = magick(*(["-monochrome"] if mode == "1" else []), "-compress", "none", to=name)
        yield Case(f"text.{name}", f"{name.upper()} as text", text)
    yield Case("rgb-16.ppm", "PPM of 16 bits", magick(to="ppm", deep=True))
    yield Case("lossless.jp2", "JPEG 2000, lossless", saved(base(), "JPEG2000"))
    yield Case(
        "lossy.jp2", "JPEG 2000, lossy", saved(base(), "JPEG2000", irreversible=True, quality_layers=[8])
    )
    yield Case("stream.j2k", "JPEG 2000, bare stream", saved(base(), "JPEG2000", no_jp2=True), format="j2k")
    yield Case("grey.jp2", "JPEG 2000, grey", saved(base().convert("L"), "JPEG2000"))
    yield Case("alpha.jp2", "JPEG 2000 with alpha", saved(seen_through(), "JPEG2000"))
    yield Case(
        "plain.avif", "AVIF", saved(Image.fromarray(picture(480, 320)), "AVIF", quality=95), format="avif"
    )
    yield Case("444.avif", "AVIF, 4:4:4", saved(base(), "AVIF", quality=95, subsampling="4:4:4"), format="avif")
    # ImageMagick 6 does not see the alpha of AVIF and HEIC.
    alpha, same = seen_through().resize((240, 160)), saved(seen_through().resize((240, 160)), "PNG")
    yield Case("alpha.avif", "AVIF with alpha", saved(alpha, "AVIF", quality=95), reference=same)
    yield from _heics()
    for name, kind in (("jpeg.png", "JPEG"), ("png.jpg", "PNG"), ("webp.gif", "WEBP"), ("gif.tif", "GIF")):
        data = saved(base().quantize(64) if kind == "GIF" else base(), kind)
        yield Case(f"wrong-name-{name}", f"{kind} with another's extension", data, format=kind.lower())


def _heics() -> Iterator[Case]:
    same = saved(seen_through(), "PNG")
    for name, image in (("plain", base()), ("grey", base().convert("L")), ("alpha", seen_through())):
        out = io.BytesIO()
        pillow_heif.from_pillow(image).save(out, quality=95, chroma=444)
        read = {"reference": same} if name == "alpha" else {"format": "heic"}
        yield Case(f"{name}.heic", f"HEIC, {name}", out.getvalue(), **read)
    exif = Image.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    pillow_heif.from_pillow(base()).save(out, quality=95, chroma=444, exif=exif.tobytes())
    yield Case("turned.heic", "HEIC, turned by a quarter", out.getvalue(), format="heic")
