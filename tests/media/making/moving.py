"""Animations, and whole videos of every container and codec, by ffmpeg; each frame shows its number."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image

from tests.media.making.case import Case, through
from tests.media.making.drawing import numbered, picture

FRAMES = 12
X264 = "-c:v libx264 -pix_fmt yuv420p -crf 12 -g 6"
X265 = "-c:v libx265 -pix_fmt yuv420p -crf 12 -x265-params log-level=none:keyint=6"
VP9 = "-c:v libvpx-vp9 -crf 12 -b:v 0 -g 6"
AV1 = "-c:v libsvtav1 -crf 12 -preset 8 -g 6 -svtav1-params enable-overlays=0"
MPEG4 = "-c:v mpeg4 -q:v 2 -g 6"
BT709 = "-color_primaries bt709 -color_trc bt709 -colorspace bt709"


def encoded(
    to: str,
    options: str,
    *,
    frames: int = FRAMES,
    size: tuple[int, int] = (96, 64),
    turned: int = 0,
    pre: str = "",
) -> bytes:
    """The file that ffmpeg makes of numbered frames; `to` is its name of the container."""
    pictures = [np.rot90(numbered(k, *size), -turned) for k in range(frames)]
    height, width = pictures[0].shape[:2]
    raw = b"".join(np.ascontiguousarray(one).tobytes() for one in pictures)
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "10", "-i", "IN"]
    return through("ffmpeg", "-v", "error", *given, *pre.split(), *options.split(), "-f", to, "OUT", data=raw)


def moving() -> Iterator[Case]:
    """Every case of this file."""
    yield from _first_frames()
    yield from _animations()
    yield from _containers()
    yield from _kinds()
    yield from _turned()
    yield from _samplings()


def _video(name: str, kind: str, data: bytes, **options: object) -> Case:
    return Case(name, kind, data, role="video", by="ffmpeg", **options)  # type: ignore[arg-type]


def _animation(kind: str, frames: list[Image.Image], **options: object) -> bytes:
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=100, **options)
    return out.getvalue()


def _first_frames() -> Iterator[Case]:
    shown = [Image.fromarray(picture()), Image.new("RGB", (60, 40), "white")]
    empty = [Image.new("RGBA", (60, 40), (255, 0, 0, 0)), Image.fromarray(picture()).convert("RGBA")]
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {})):
        data = _animation(kind, shown, **options)
        name = {"GIF": "gif", "WEBP": "webp", "PNG": "apng"}[kind]
        yield Case(f"animated.{name}", f"animated {kind}: its first frame", data, format=kind.lower())
    for kind in ("WEBP", "PNG"):
        data = _animation(kind, empty, disposal=1, **({"lossless": True} if kind == "WEBP" else {}))
        name = {"WEBP": "webp", "PNG": "apng"}[kind]
        still = io.BytesIO()
        Image.fromarray(picture()).save(still, "PNG")
        what = f"animated {kind} whose first frame is empty: the second"
        yield Case(f"empty-first.{name}", what, data, reference=still.getvalue())


def _animations() -> Iterator[Case]:
    frames = [Image.fromarray(numbered(k)) for k in range(FRAMES)]
    gif = [frame.quantize(32) for frame in frames]
    yield _video("film.gif", "animated GIF as a video", _animation("GIF", gif))
    yield _video("film.apng", "animated PNG as a video", _animation("PNG", frames), format="apng")
    # ffmpeg reads no animated WebP: it is held against the PNG of the same frames.
    webp, same = _animation("WEBP", frames, lossless=True), _animation("PNG", frames)
    yield _video("film.webp", "animated WebP as a video", webp, reference=same, format="apng")


def _containers() -> Iterator[Case]:
    for name, to, options in (
        ("h264.mp4", "mp4", X264),
        ("hevc.mp4", "mp4", X265),
        ("av1.mp4", "mp4", AV1),
        ("mpeg4.mp4", "mp4", MPEG4),
        ("mpeg4-b.mp4", "mp4", f"{MPEG4} -bf 2"),
        ("faststart.mp4", "mp4", f"{X264} -movflags faststart"),
        ("fragments.mp4", "mp4", f"{X264} -movflags frag_keyframe+empty_moov"),
        ("h264.mov", "mov", X264),
        ("mjpeg.mov", "mov", "-c:v mjpeg -q:v 2 -pix_fmt yuvj420p"),
        ("prores.mov", "mov", "-c:v prores -pix_fmt yuv422p10le"),
        ("h264.mkv", "matroska", X264),
        ("hevc.mkv", "matroska", X265),
        ("ffv1.mkv", "matroska", "-c:v ffv1 -pix_fmt yuv444p"),
        ("mjpeg.mkv", "matroska", "-c:v mjpeg -q:v 2 -pix_fmt yuvj420p"),
        ("vp8.webm", "webm", "-c:v libvpx -crf 8 -b:v 1M -g 6"),
        ("vp9.webm", "webm", VP9),
        ("av1.webm", "webm", AV1),
        ("mpeg4.avi", "avi", MPEG4),
        ("mpeg4-b.avi", "avi", f"{MPEG4} -bf 2"),
        ("mjpeg.avi", "avi", "-c:v mjpeg -q:v 2 -pix_fmt yuvj420p"),
        ("h264.avi", "avi", f"{X264} -bf 0"),
        ("h264.ts", "mpegts", X264),
        ("hevc.ts", "mpegts", X265),
        ("mpeg2.ts", "mpegts", "-r 25 -c:v mpeg2video -q:v 2 -g 6 -bf 2"),
        ("h264.m2ts", "mpegts", f"{X264} -mpegts_m2ts_mode 1"),
        ("mpeg1.mpg", "mpeg", "-r 25 -c:v mpeg1video -q:v 2 -g 6"),
        ("mpeg2.mpg", "vob", "-r 25 -c:v mpeg2video -q:v 2 -g 6"),
        ("h264.flv", "flv", X264),
        ("wmv2.wmv", "asf", "-c:v wmv2 -q:v 2"),
        ("theora.ogv", "ogg", "-c:v libtheora -q:v 9"),
    ):
        yield _video(name, f"{to}, {options.split()[1] if options[:2] == '-c' else options.split()[3]}",
                     encoded(to, options))  # fmt: skip


def _kinds() -> Iterator[Case]:
    yield _video(
        "open-gop.mp4", "H.264 with open groups", encoded("mp4", f"{X264} -bf 3 -x264-params open-gop=1")
    )
    yield _video("open-gop.mkv", "HEVC with open groups", encoded("matroska", f"{X265}:open-gop=1:bframes=3"))
    uneven = "settb=1/100,setpts=(N*N)*10/TB/100"
    for to, name in (("mp4", "uneven.mp4"), ("matroska", "uneven.mkv")):
        data = encoded(to, f"-vf {uneven} -vsync vfr {X264}")
        yield _video(name, "frames that come unevenly", data)
    for name, options in (
        ("h264-10.mp4", "-c:v libx264 -pix_fmt yuv420p10le -crf 8"),
        ("hevc-10.mp4", X265.replace("yuv420p", "yuv420p10le")),
        ("vp9-10.webm", f"{VP9} -pix_fmt yuv420p10le"),
        ("h264-444.mp4", X264.replace("yuv420p", "yuv444p")),
        ("h264-422.mp4", X264.replace("yuv420p", "yuv422p")),
        ("full-range.mp4", X264.replace("yuv420p", "yuvj420p")),
        ("bt709.mp4", f"-vf scale=out_color_matrix=bt709 {X264} {BT709}"),
    ):
        yield _video(
            name, f"pixels: {name.split('.')[0]}", encoded("webm" if "webm" in name else "mp4", options)
        )
    sdr = (
        "format=gbrpf32le,zscale=p=bt709,tonemap=mobius:desat=0:peak=4.926108,zscale=t=iec61966-2-1:m=gbr:r=pc"
    )
    for curve, name in (("smpte2084", "pq"), ("arib-std-b67", "hlg")):
        grey = "hue=s=0,eq=brightness=-0.1:contrast=0.8," if name == "hlg" else ""
        tagged = f"setparams=color_primaries=bt2020:color_trc={curve}:colorspace=gbr:range=pc"
        options = f"-vf {grey}format=gbrp,{tagged},zscale=m=2020_ncl:r=tv,format=yuv420p10le " + X265.replace(
            "yuv420p", "yuv420p10le"
        ).replace("crf 12", "crf 4")
        tags = f" -color_primaries bt2020 -color_trc {curve} -colorspace bt2020nc -color_range tv"
        data = encoded("mp4", options + tags)
        yield _video(f"{name}.mp4", f"HDR, {name.upper()}", data,
                     filters=f"zscale=t=linear:npl=203,{sdr},format=gbrp,format=rgb24")  # fmt: skip
    for order in ("tff", "bff"):
        field = f"-vf setfield={order} -flags +ildct+ilme -r 25 -c:v mpeg2video -q:v 2 -g 6"
        yield _video(f"interlaced-{order}.ts", f"interlaced, {order}", encoded("mpegts", field),
                     filters="bwdif=mode=send_frame")  # fmt: skip
    x264i = f"-vf setfield=tff {X264} -flags +ildct+ilme -x264opts tff=1"
    yield _video("interlaced.mp4", "interlaced H.264", encoded("mp4", x264i), filters="bwdif=mode=send_frame")
    for width, height in ((95, 63), (97, 65), (101, 31)):
        options = X264.replace("yuv420p", "yuv444p")
        data = encoded("mp4", options, size=(width, height))
        yield _video(f"odd-{width}x{height}.mp4", "odd sizes", data)
    wide = encoded("mp4", f"-vf setsar=2/1 {X264}")
    yield _video("wide-pixels.mp4", "pixels twice as wide as high", wide, filters="scale=iw*2:ih,setsar=1")
    two = encoded("mpegts", X264, frames=6) + encoded("mpegts", f"-vf scale=48:32 {X264} -output_ts_offset 1.0")
    yield _video("two-sizes.ts", "the size changes on the way", two, frames=(*range(6), *range(12)),
                 sampling={"num_frames": 100}, filters="scale=96:64")  # fmt: skip
    sound = "-f lavfi -i sine=d=1.2 -c:a aac -shortest"
    yield _video("with-sound.mp4", "with sound", encoded("mp4", X264, pre=sound))
    yield _video("one-frame.mp4", "one frame", encoded("mp4", X264, frames=1))
    yield _video("one-frame.webm", "one frame", encoded("webm", VP9, frames=1))
    yield _video("two-frames.mkv", "two frames", encoded("matroska", X264, frames=2))


def _turned() -> Iterator[Case]:
    for degrees in (90, 180, 270):
        for to, name in (("mp4", "mp4"), ("mov", "mov")):
            data = encoded(to, X264, turned=degrees // 90)
            mark = ["-c", "copy", "-metadata:s:v:0", f"rotate={degrees}", "-f", to]
            data = through("ffmpeg", "-v", "error", "-i", "IN", *mark, "OUT", data=data, given=".mp4")
            yield _video(
                f"turned-{degrees}.{name}", f"rotated by {degrees} degrees", data, frames=(0, 3, 7, 11)
            )


def _samplings() -> Iterator[Case]:
    long = encoded("mp4", X264.replace("-g 6", "-g 15 -keyint_min 15 -sc_threshold 0"), frames=60)
    for name, sampling, frames in (
        ("keyframes", {"keyframes": True}, (0, 15, 30, 45)),
        ("two-keyframes", {"keyframes": True, "max_frames": 2}, (0, 45)),
        ("middle", {"num_frames": 3, "start": 2.0, "end": 4.0}, (20, 29, 39)),
        ("by-rate", {"fps": 1.0}, (0, 10, 20, 30, 40, 50)),
        ("end-by-rate", {"fps": 2.0, "start": 4.5}, (45, 50, 55)),
        ("capped", {"fps": 10.0, "max_frames": 3}, (0, 29, 59)),
    ):
        yield _video(f"{name}.mp4", f"sampled: {name}", long, frames=frames, sampling=sampling)
    edited = through("ffmpeg", "-v", "error", "-ss", "2.2", "-i", "IN", "-c", "copy", "-f", "mp4", "OUT",
                     data=long, given=".mp4")  # fmt: skip
    yield _video("edit-list.mp4", "an edit list hides the start", edited)
    yield _video("beyond.mp4", "sampled beyond its end", long, codes=("clip_outside",),
                 sampling={"num_frames": 4, "start": 6.0})  # fmt: skip
