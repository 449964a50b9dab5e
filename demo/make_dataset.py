"""Makes the sample dataset: pictures and videos in files, and a manifest with questions and true answers."""

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from demo.draw import Clip, Drawing, draw_shapes, draw_text, draw_video
from demo.drawing.phrases import CAPTION_QUESTIONS, TEXT_QUESTIONS, VIDEO_QUESTIONS
from demo.encode_video import encode_video

SHIPPED_SEED = 20261130
_IMAGE_SIDE = (112, 336)  # pixels, both ends included: where the model is nearly always right
_TEXT_LINE = 10  # characters: longer lines are read badly
_VIDEO_SIDE = (84, 168)
_MISREAD_WIDTHS = (96, 144)  # decord2 3.4 returns frames of these widths with four channels, scrambled
_FRAMES = 8
_FRAMES_PER_SECOND = 2
_REDRAWS = 1000

# What Pillow needs to write each format; taken in turn.
_FORMATS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("jpg", {"quality": 92}),
    ("png", {"optimize": True}),
    ("webp", {"quality": 92}),
)

Drawn = TypeVar("Drawn", Drawing, Clip)


@dataclass(frozen=True)
class Row:
    """One line of the manifest; exactly one of `image` and `video` is set, relative to the manifest."""

    id: str
    question: str
    answer: str
    image: str | None = None
    video: str | None = None

    def to_json(self) -> str:
        """The row as one line of JSON, without the field that is not set."""
        order = ("id", "image", "video", "question", "answer")
        fields = asdict(self)
        return json.dumps({name: fields[name] for name in order if fields[name] is not None})


def make_dataset(folder: Path, *, shapes: int, texts: int, videos: int, seed: int) -> Path:
    """Writes `images/`, `videos/` and `manifest.jsonl` into `folder` and returns the manifest's path.

    The same arguments give the same rows, and the same files where the codecs are the same. No answer
    comes twice, so two rows that were swapped are noticed. Kinds are mixed along the manifest.

    Args:
        folder: made if it is not there; files of the same names are overwritten.
        shapes: pictures to be described.
        texts: pictures to be read.
        videos: videos to be described; needs PyAV.
        seed: any number; others give other pictures.

    Raises:
        ValueError: more rows of a kind are wanted than there are different answers (videos: 192).
        RuntimeError: videos are wanted and PyAV is not installed.
    """
    kinds = ["shapes"] * shapes + ["text"] * texts + ["video"] * videos
    random.Random(seed).shuffle(kinds)
    writer = _Writer(folder, seed)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "manifest.jsonl"
    lines = [writer.write_video() if kind == "video" else writer.write_image(kind) for kind in kinds]
    manifest.write_text("".join(f"{row.to_json()}\n" for row in lines))
    return manifest


class _Writer:
    """Numbers the files of one dataset and remembers which answers it has."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._answers: set[str] = set()
        self._images = 0
        self._videos = 0

    def write_image(self, kind: str) -> Row:
        self._images += 1
        name = f"{kind}-{self._images:04d}"
        draw = _draw_short_text if kind == "text" else _draw_any_shapes
        drawing = self._draw_new(draw, name)
        suffix, options = _FORMATS[self._images % len(_FORMATS)]
        path = f"images/{self._images:04d}.{suffix}"
        drawing.image.save(self._open_place(path), **options)
        question = (TEXT_QUESTIONS if kind == "text" else CAPTION_QUESTIONS)[0]
        return Row(name, question, drawing.answer, image=path)

    def write_video(self) -> Row:
        self._videos += 1
        name = f"video-{self._videos:04d}"
        clip = self._draw_new(_draw_any_video, name)
        path = f"videos/{self._videos:04d}.mp4"
        encode_video(clip.frames, self._open_place(path), _FRAMES_PER_SECOND)
        return Row(name, VIDEO_QUESTIONS[0], clip.answer, video=path)

    def _draw_new(self, draw: Callable[[random.Random], Drawn], name: str) -> Drawn:
        """A drawing whose answer no earlier row has; its own generator keeps rows independent."""
        rng = random.Random(f"{self._seed} {name}")
        for _ in range(_REDRAWS):
            drawn = draw(rng)
            if drawn.answer not in self._answers:
                self._answers.add(drawn.answer)
                return drawn
        raise ValueError(f"no new answer for {name} in {_REDRAWS} drawings: ask for fewer rows of this kind")

    def _open_place(self, path: str) -> Path:
        place = self._folder / path
        place.parent.mkdir(exist_ok=True)
        return place


def _draw_any_shapes(rng: random.Random) -> Drawing:
    return draw_shapes(rng, rng.randint(*_IMAGE_SIDE), rng.randint(*_IMAGE_SIDE))


def _draw_short_text(rng: random.Random) -> Drawing:
    """Text whose lines the model can read: `draw_text` alone also writes somewhat longer ones."""
    while True:
        drawing = draw_text(rng, rng.randint(*_IMAGE_SIDE), rng.randint(*_IMAGE_SIDE))
        if all(len(line) <= _TEXT_LINE for line in drawing.answer.split("\n")):
            return drawing


def _draw_any_video(rng: random.Random) -> Clip:
    """Even sides: H.264 halves the resolution of colour."""
    low, high = _VIDEO_SIDE
    width, height = (2 * rng.randint(low // 2, high // 2) for _ in range(2))
    if width in _MISREAD_WIDTHS:
        width += 2
    return draw_video(rng, width, height, _FRAMES)


def main() -> None:
    """The command line: without arguments, the dataset that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "dataset", help="folder to fill")
    parser.add_argument("--count", type=int, default=96, help="pictures; a quarter of them are text to read")
    parser.add_argument("--videos", type=int, default=16, help="videos; they need PyAV (pip install av)")
    parser.add_argument("--no-videos", action="store_true", help="the same as --videos 0")
    parser.add_argument("--seed", type=int, default=SHIPPED_SEED)
    options = parser.parse_args()
    texts = options.count // 4
    videos = 0 if options.no_videos else options.videos
    manifest = make_dataset(
        options.out, shapes=options.count - texts, texts=texts, videos=videos, seed=options.seed
    )
    print(f"{options.count} pictures and {videos} videos: {manifest}")


if __name__ == "__main__":
    main()
