"""One to three lines of capitals and digits, and what they say."""

import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from demo.drawing.kinds import Drawing, Mark, label_character
from demo.drawing.palette import RGB, make_canvas, maybe_jpeg, pick_background, random_colour
from demo.drawing.phrases import TEXT_QUESTIONS, ask, random_line

FONTS = Path(__file__).parent.parent / "training" / "fonts"
_FONT_CHOICES = 7  # six DejaVu files and the font that comes with Pillow
_MARGIN = 2
_LAST_ORDER = 31  # training tells apart 32 places; what follows counts as the last
_LEAST_CONTRAST = 90  # of 255, in luminance

Font = ImageFont.FreeTypeFont


@dataclass(frozen=True)
class _Block:
    """The lines and where they go."""

    lines: tuple[str, ...]
    corners: tuple[tuple[float, float], ...]
    """Left edge and top of the capitals of each line, in pixels."""


def draw_text(
    rng: random.Random, width: int, height: int, *, level: float = 1.0, gradient_share: float = 0.2
) -> Drawing:
    """A picture of `width` x `height` pixels with text to read; the answer has one line per line.

    Args:
        rng: source of every choice; the same state gives the same picture.
        width: at least 56 for a character or two.
        height: as `width`; each line takes 30 or more.
        level: difficulty from 0 to 1, raised during training: more lines, longer lines.
        gradient_share: how often the background has a gradient.
    """
    line_count = _pick_line_count(rng, height, level)
    font_size = _pick_font_size(rng, height, line_count)
    font = _load_font(rng.randrange(_FONT_CHOICES), font_size)
    limit = _limit_length(font, width, line_count, level)
    lines = tuple(_shorten(random_line(rng, limit) or "A", font, width - 6) for _ in range(line_count))
    ink, background = _pick_contrast(rng)
    image = make_canvas(rng, width, height, background, gradient_share)
    block = _place_lines(rng, font, lines, image.size)
    _paint(image, font, block, ink)
    answer = "\n".join(lines)
    marks = _mark_characters(font, block)
    return Drawing(maybe_jpeg(rng, image), ask(rng, TEXT_QUESTIONS), answer, marks)


def _pick_line_count(rng: random.Random, height: int, level: float) -> int:
    most = min(3, max(1, (height - 4) // 30))
    if level > 0.5:
        return rng.randint(1, most)
    return rng.randint(1, min(2, most)) if level > 0.25 else 1


def _pick_font_size(rng: random.Random, height: int, line_count: int) -> int:
    """24 to 60 pixels, the smaller sizes more often."""
    largest = max(24, min(60, int((height - 4) / line_count / 1.2)))
    return min(largest, 24 + int((largest - 23) * rng.random() ** 1.5))


@lru_cache(maxsize=512)
def _load_font(choice: int, size: int) -> Font:
    files = sorted(FONTS.glob("*.ttf"))
    if choice < len(files):
        return ImageFont.truetype(str(files[choice]), size, layout_engine=ImageFont.Layout.BASIC)
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType: install a wheel that has it to draw text")
    return font


def _limit_length(font: Font, width: int, line_count: int, level: float) -> int:
    """The most characters of a line that the difficulty and, roughly, the width allow."""
    longest = 12 if line_count == 1 else 10
    return max(1, min(3 + int(level * 9), longest, int((width - 4) / (0.5 * font.size))))


def _shorten(line: str, font: Font, width: int) -> str:
    while len(line) > 1 and font.getlength(line) > width:
        line = line[:-1].strip()
    return line


def _pick_contrast(rng: random.Random) -> tuple[RGB, RGB]:
    """Ink and background that differ in brightness."""
    while True:
        background = pick_background(rng) if rng.random() < 0.8 else random_colour(rng)
        usual: tuple[RGB, ...] = ((0, 0, 0), (20, 20, 60), (255, 255, 255))
        ink = rng.choice(usual) if rng.random() < 0.6 else random_colour(rng)
        if abs(_luminance(background) - _luminance(ink)) > _LEAST_CONTRAST:
            return ink, background


def _luminance(colour: RGB) -> float:
    red, green, blue = colour
    return 0.3 * red + 0.59 * green + 0.11 * blue


def _place_lines(rng: random.Random, font: Font, lines: tuple[str, ...], size: tuple[int, int]) -> _Block:
    """A block anywhere in the picture, its lines aligned left, in the centre or right."""
    width, height = size
    gaps = len(lines) - 1
    capitals = _capital_height(font)
    spacing = 0.0
    if gaps:
        spacing = min((height - 2 * _MARGIN - capitals) / gaps, rng.uniform(1.1, 1.6) * font.size)
    block_height = capitals + spacing * gaps
    top = rng.uniform(_MARGIN, max(_MARGIN + 0.01, height - _MARGIN - block_height))
    alignment = rng.choice("lcr")
    widths = [font.getlength(line) for line in lines]
    widest = max(widths)
    left = rng.uniform(_MARGIN, max(_MARGIN + 0.01, width - _MARGIN - widest))
    share = {"l": 0.0, "c": 0.5, "r": 1.0}[alignment]
    corners = tuple(
        (left + (widest - line_width) * share, top + index * spacing) for index, line_width in enumerate(widths)
    )
    return _Block(lines, corners)


def _capital_height(font: Font) -> int:
    return int(0.74 * font.size)


def _paint(image: Image.Image, font: Font, block: _Block, ink: RGB) -> None:
    draw = ImageDraw.Draw(image)
    above_capitals = font.getbbox("H")[1]
    for line, (x, y) in zip(block.lines, block.corners, strict=True):
        draw.text((int(x), int(y - above_capitals)), line, fill=ink, font=font)


def _mark_characters(font: Font, block: _Block) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    middle = _capital_height(font) / 2
    for line, (x, y) in zip(block.lines, block.corners, strict=True):
        for index, character in enumerate(line):
            if character == " ":
                continue
            centre = int(x) + (font.getlength(line[:index]) + font.getlength(line[: index + 1])) / 2
            order = min(len(marks), _LAST_ORDER)
            marks.append(Mark(label_character(character), order, centre, y + middle, 0))
    return tuple(marks)
