"""Distinct pictures and clips, made where they are measured, and the prompts about them for engines as such."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

QUESTION = "Describe this in detail."
FRAMES = 16
FPS, SECONDS, WIDTH, HEIGHT = 30, 10, 1280, 720


def make_pictures(folder: Path, count: int) -> None:
    """JPEGs of 1024 x 768 pixels: smooth noise, so that they are of a photograph's size (about 200 kB)."""
    _in_parallel(_make_picture, folder, count, "jpg")


def make_clips(folder: Path, count: int) -> None:
    """H.264 in MP4, 10 s of 720p at 30 frames/s, a keyframe every 8 s: smooth noise that moves."""
    _in_parallel(_make_clip, folder, count, "mp4")


def prompts_about(folder: Path) -> list[dict[str, Any]]:
    """What `LLM.generate` takes for each file of the folder, decoded: a picture, or the clip's 16 frames."""
    paths = sorted(folder.iterdir())
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_frames_prompt if are_clips(folder) else _picture_prompt, paths))


def are_clips(folder: Path) -> bool:
    """Whether the folder was made by `make_clips`."""
    return next(folder.iterdir()).suffix == ".mp4"


def prompt_about(placeholder: str) -> str:
    """The question, as Qwen2.5-VL's chat template writes it."""
    return (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        f"<|vision_start|>{placeholder}<|vision_end|>{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )


def picture_of(path: Path) -> Image.Image:
    """The picture, decoded."""
    return Image.open(path).convert("RGB")


def _picture_prompt(path: Path) -> dict[str, Any]:
    return {"prompt": prompt_about("<|image_pad|>"), "multi_modal_data": {"image": [picture_of(path)]}}


def _frames_prompt(path: Path) -> dict[str, Any]:
    from pipeline.media.sampling import FrameSampling
    from pipeline.media.shrink import PixelBudget
    from pipeline.media.video import decode_video

    video = decode_video(
        path.read_bytes(), sampling=FrameSampling(num_frames=FRAMES), budget=PixelBudget(), max_pixels=10**7
    )
    return {"prompt": prompt_about("<|video_pad|>"), "multi_modal_data": {"video": [video]}}


def _in_parallel(make: Callable[[Path], None], folder: Path, count: int, suffix: str) -> None:
    folder.mkdir(parents=True)
    with ProcessPoolExecutor() as pool:
        list(pool.map(make, [folder / f"{number:05d}.{suffix}" for number in range(count)], chunksize=4))


def _noise(number: int, width: int, height: int) -> np.ndarray[Any, np.dtype[np.int16]]:
    random = np.random.default_rng(number)
    small = Image.fromarray(random.integers(0, 256, (height // 8, width // 8, 3), np.uint8))
    large = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC), np.int16)
    return large + random.integers(-12, 13, large.shape, np.int16)


def _make_picture(path: Path) -> None:
    pixels = np.clip(_noise(int(path.stem), 1024, 768), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=88)


def _make_clip(path: Path) -> None:
    import av

    wide = np.clip(_noise(int(path.stem), 2 * WIDTH, HEIGHT), 0, 255).astype(np.uint8)
    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "28"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(FPS * SECONDS):
            frame = av.VideoFrame.from_ndarray(
                np.ascontiguousarray(wide[:, 4 * number : 4 * number + WIDTH]), format="rgb24"
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    path.write_bytes(made.getvalue())
