"""Builds the tokenizer: whole words for prompts and captions, single characters for text that was read."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from demo.drawing.palette import COLOUR_NAMES
from demo.drawing.phrases import CAPTION_QUESTIONS, SHAPES, TEXT_QUESTIONS, VIDEO_QUESTIONS, name_shape
from demo.training.prompt import IMAGE_PAD, VIDEO_PAD

END_OF_TURN = "<|im_end|>"
PADDING = "<|endoftext|>"
SPECIAL_TOKENS = (
    PADDING,
    "<|im_start|>",
    END_OF_TURN,
    "<|vision_start|>",
    "<|vision_end|>",
    IMAGE_PAD,
    VIDEO_PAD,
)
_LARGEST_VOCABULARY = 569  # not reached: every word is whole before that, at 432 with the special tokens
_PROMPT_REPEATS = 20


def build_tokenizer() -> Tokenizer:
    """A byte-level BPE whose merges were learnt from captions and prompts only, so never from read text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_LARGEST_VOCABULARY,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[],
        show_progress=False,
        min_frequency=2,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS]
    )
    return tokenizer


def find_id(tokenizer: Tokenizer, token: str) -> int:
    """The number of a token.

    Raises:
        KeyError: the tokenizer has no such token.
    """
    found: int | None = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(f"the tokenizer has no token {token!r}")
    return found


def _corpus() -> list[str]:
    prompts = ["system\nYou are a helpful assistant.", "user\n", "assistant\n"]
    prompts += [*CAPTION_QUESTIONS, *TEXT_QUESTIONS, *VIDEO_QUESTIONS]
    names = [name_shape(colour, shape) for colour in COLOUR_NAMES for shape in SHAPES]
    return [_every_caption_word(name) for name in names] + prompts * _PROMPT_REPEATS


def _every_caption_word(name: str) -> str:
    return (
        f"{name} left of {name}, {name} above {name} and {name} in a row in a column moves left right up down"
    )
