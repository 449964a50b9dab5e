"""The words of the demo: questions, shape names, and text to be read."""

import random
import string

SHAPES = ("circle", "square", "triangle", "star", "diamond", "cross")
CHARACTERS = string.ascii_uppercase + string.digits

# The first question of each tuple is the one to ask; the others are seen in training only.
CAPTION_QUESTIONS = (
    "Describe this image.",
    "Describe the image.",
    "Caption this image.",
    "What is in this image?",
    "Describe this picture.",
)
TEXT_QUESTIONS = (
    "Read the text.",
    "Read the text in this image.",
    "What does the text say?",
    "Transcribe the text.",
    "What text is in this image?",
)
VIDEO_QUESTIONS = ("Describe this video.", "Describe the video.", "What happens in this video?")

_WORD_LIST = """
INVOICE TOTAL DATE NAME ADDRESS PHONE EMAIL ORDER ITEM PRICE TAX PAID DUE BILL SHIP CITY STATE CODE ID
NO OPEN CLOSED SALE EXIT STOP PUSH PULL HELLO WORLD RED GREEN BLUE PAGE FORM SIGN HERE THANK YOU CAFE
MENU TEA MILK BREAD APPLE ROOM GATE SEAT ROW FLIGHT TRAIN BUS STREET ROAD NORTH SOUTH EAST WEST JAN FEB
MAR APR MAY JUN JUL AUG SEP OCT NOV DEC MON TUE WED THU FRI SAT SUN BANK CASH CARD USD EUR KG BOX LOT
BATCH TEST DATA VIDEO IMAGE QUICK BROWN FOX JUMPS OVER LAZY DOG ZERO ONE TWO THREE FOUR FIVE SIX SEVEN
EIGHT NINE TEN
"""
WORDS = tuple(_WORD_LIST.split())


def name_shape(colour: str, shape: str) -> str:
    """`a red circle`, `an orange star`."""
    article = "an" if colour[0] in "aeiou" else "a"
    return f"{article} {colour} {shape}"


def ask(rng: random.Random, questions: tuple[str, ...]) -> str:
    """The first question mostly (seven in ten), else any of them."""
    return questions[0] if rng.random() < 0.7 else rng.choice(questions)


def random_line(rng: random.Random, limit: int) -> str:
    """One line of at most `limit` characters: a word, a number, letters or both; may come out empty."""
    kind = rng.random()
    if kind < 0.3:
        line = rng.choice(WORDS)
    elif kind < 0.5:
        line = _random_characters(rng, string.digits, limit)
    elif kind < 0.7:
        line = _random_characters(rng, string.ascii_uppercase, limit)
    else:
        line = _random_characters(rng, CHARACTERS, limit)
    if rng.random() < 0.3 and len(line) + 2 <= limit:
        line = f"{line} {_second_word(rng, limit - len(line) - 1)}"
    return line[:limit].strip()


def _random_characters(rng: random.Random, alphabet: str, limit: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, limit)))


def _second_word(rng: random.Random, limit: int) -> str:
    if rng.random() < 0.4:
        return rng.choice(WORDS)
    length = rng.randint(1, max(1, limit))
    return "".join(rng.choice(CHARACTERS if rng.random() < 0.5 else string.digits) for _ in range(length))
