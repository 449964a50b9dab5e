"""The chat prompt that the model was trained with, the same for every question."""

IMAGE_PAD = "<|image_pad|>"
VIDEO_PAD = "<|video_pad|>"
LONGEST_TAIL = 64  # tokens: what follows the image or video, answer included, in training

PROMPT_HEAD = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<|vision_start|>"


def end_prompt(question: str) -> str:
    """What follows the image or video, up to where the answer begins."""
    return f"<|vision_end|>{question}<|im_end|>\n<|im_start|>assistant\n"


def make_prompt(pad: str, question: str) -> str:
    """The whole prompt; `pad` is `IMAGE_PAD` or `VIDEO_PAD`, once: the processor repeats it."""
    return PROMPT_HEAD + pad + end_prompt(question)
