"""Questions with true answers to examine the model with: drawn for it, or read from a manifest."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from demo.draw import draw_shapes, draw_text, draw_video
from demo.drawing.phrases import CAPTION_QUESTIONS, TEXT_QUESTIONS, VIDEO_QUESTIONS

EXAM_SEED = 20260101  # no training worker starts from it


@dataclass(frozen=True)
class Question:
    """One thing to ask the model."""

    kind: str
    """`shapes`, `text` or `video`."""
    pixels: NDArray[np.uint8]
    """[height, width, 3], or [frames, height, width, 3] for a video."""
    text: str
    answer: str

    @property
    def is_video(self) -> bool:
        """Whether `pixels` has frames."""
        return self.pixels.ndim == 4


def draw_exam(count: int, seed: int = EXAM_SEED) -> list[Question]:
    """`count` questions of each kind, of random sizes within what the model is good at."""
    rng = random.Random(seed)
    questions = []
    for kind, draw, texts in (
        ("shapes", draw_shapes, CAPTION_QUESTIONS),
        ("text", draw_text, TEXT_QUESTIONS),
    ):
        for _ in range(count):
            largest = 448 if rng.random() < 0.6 else 260
            drawing = draw(rng, rng.randint(84, largest), rng.randint(84, largest))
            questions.append(Question(kind, np.asarray(drawing.image), texts[0], drawing.answer))
    for _ in range(count):
        frames = rng.choice((4, 6, 8))
        clip = draw_video(rng, rng.randint(84, 168), rng.randint(84, 168), frames)
        pixels = np.stack([np.asarray(frame) for frame in clip.frames])
        questions.append(Question("video", pixels, VIDEO_QUESTIONS[0], clip.answer))
    return questions


def read_exam(manifest: Path) -> list[Question]:
    """The rows of a manifest that `demo.make_dataset` wrote, their files decoded."""
    return [_read_row(json.loads(line), manifest.parent) for line in manifest.read_text().splitlines()]


def _read_row(row: dict[str, str], folder: Path) -> Question:
    kind = row["id"].split("-")[0]
    if "video" in row:
        pixels = _decode_video(folder / row["video"])
    else:
        pixels = np.asarray(Image.open(folder / row["image"]).convert("RGB"))
    return Question(kind, pixels, row["question"], row["answer"])


def _decode_video(path: Path) -> NDArray[np.uint8]:
    import decord  # not needed to examine the model with drawn pictures

    reader = decord.VideoReader(str(path))
    frames: NDArray[np.uint8] = reader.get_batch(range(len(reader))).asnumpy()
    return frames
