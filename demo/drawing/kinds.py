"""What a drawing is: a picture or video with its question, its true answer, and where each thing is."""

from dataclasses import dataclass

from PIL import Image

from demo.drawing.palette import COLOUR_NAMES
from demo.drawing.phrases import CHARACTERS, SHAPES

# Label 0 is background; then the characters, then every colour of every shape.
LABELS = 1 + len(CHARACTERS) + len(COLOUR_NAMES) * len(SHAPES)


@dataclass(frozen=True)
class Mark:
    """One shape or one character of a drawing: what training's per-patch labels are made from."""

    label: int
    """1 to `LABELS` - 1: `label_character` or `label_shape`."""
    order: int
    """Its place in the answer, from 0."""
    x: float
    """Centre, in pixels from the left."""
    y: float
    """Centre, in pixels from the top."""
    radius: float
    """Half the extent in pixels; 0 for a character."""


@dataclass(frozen=True)
class Drawing:
    """A drawn picture and what is true of it."""

    image: Image.Image
    question: str
    answer: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Clip:
    """A drawn video and what is true of it."""

    frames: tuple[Image.Image, ...]
    question: str
    answer: str


def label_character(character: str) -> int:
    """The label of a letter or digit."""
    return 1 + CHARACTERS.index(character)


def label_shape(colour: str, shape: str) -> int:
    """The label of a shape in a colour."""
    return 1 + len(CHARACTERS) + COLOUR_NAMES.index(colour) * len(SHAPES) + SHAPES.index(shape)
