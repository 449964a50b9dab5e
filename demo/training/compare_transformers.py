"""Compares the training code with transformers on the same weights: cut patches and logits.

python -m demo.training.compare_transformers demo/model
"""

import argparse
import random
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

from demo.training.augment import normalise
from demo.training.grids import PATCH, Grid
from demo.training.model import TRAINING_ONLY, ShapesVL, cut_patches
from demo.training.positions import Clock
from demo.training.prompt import IMAGE_PAD, PROMPT_HEAD, end_prompt
from demo.training.samples import Variety, draw_sample
from demo.training.tokenizer import END_OF_TURN

_GRIDS = (Grid(1, 3, 5), Grid(1, 6, 4), Grid(1, 9, 11))


def load_trained(folder: Path) -> ShapesVL:
    """The training code's model with the weights of a model folder.

    Raises:
        ValueError: the folder's parameters are not the model's.
    """
    model = ShapesVL()
    model.eval()
    weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    missing = [name for name in missing if not name.startswith(TRAINING_ONLY)]
    if missing or unexpected:
        raise ValueError(f"{folder}: parameters missing: {missing}, unexpected: {unexpected}")
    return model


def main() -> None:
    """The command line: prints the differences for pictures of three sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="an exported model folder")
    folder = parser.parse_args().model
    processor = AutoProcessor.from_pretrained(folder)
    reference = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    ours = load_trained(folder)
    rng = random.Random(3)
    for grid in _GRIDS:
        sample = draw_sample(rng, grid, Variety())
        text = PROMPT_HEAD + IMAGE_PAD + end_prompt(sample.question) + sample.answer + END_OF_TURN
        inputs = processor(text=[text], images=[Image.fromarray(sample.pixels[0])], return_tensors="pt")
        pixels = torch.from_numpy(sample.pixels.copy())[None].float() / 255
        patches = cut_patches(normalise(pixels), grid)
        prompt = torch.tensor(processor.tokenizer(PROMPT_HEAD)["input_ids"])
        tail = inputs["input_ids"][0, len(prompt) + grid.rows * grid.columns :]
        with torch.no_grad():
            expected = reference(**inputs).logits[0, -len(tail) :]
            hidden, _ = ours(patches, grid, prompt, tail[None], Clock())
            logits = ours.lm_head(hidden)[0]
        patch_difference = (_twice(patches) - inputs["pixel_values"]).abs().max()
        logit_difference = (logits - expected).norm() / expected.norm()
        print(f"{grid}: patches differ by {patch_difference:.2g}, logits by {logit_difference:.2g} (relative)")


def _twice(patches: Tensor) -> Tensor:
    """Patches of a picture as the processor makes them: the one frame stands twice."""
    frames = patches.view(-1, 3, 1, PATCH, PATCH).expand(-1, 3, 2, PATCH, PATCH)
    return frames.reshape(len(frames), -1)


if __name__ == "__main__":
    main()
