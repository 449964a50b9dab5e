"""Counts how many answers of the model, run by vLLM, are exactly right.

python -m demo.training.evaluate demo/model --count 200
python -m demo.training.evaluate demo/model --manifest demo/dataset/manifest.jsonl
"""

import argparse
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from demo.training.exam import EXAM_SEED, Question, draw_exam, read_exam
from demo.training.prompt import IMAGE_PAD, VIDEO_PAD, make_prompt

_FRAMES_PER_SECOND = 2.0
_KV_CACHE_BYTES = 64 << 20  # without a number vLLM takes gigabytes for this tiny model


def to_request(question: Question) -> dict[str, Any]:
    """The question as vLLM takes it; a video with its metadata, since all its frames are to be seen."""
    if not question.is_video:
        prompt = make_prompt(IMAGE_PAD, question.text)
        return {"prompt": prompt, "multi_modal_data": {"image": [question.pixels]}}
    frames = len(question.pixels)
    metadata = {
        "fps": _FRAMES_PER_SECOND,
        "duration": frames / _FRAMES_PER_SECOND,
        "total_num_frames": frames,
        "frames_indices": list(range(frames)),
        "video_backend": "opencv",
        "do_sample_frames": False,
    }
    prompt = make_prompt(VIDEO_PAD, question.text)
    return {"prompt": prompt, "multi_modal_data": {"video": [(question.pixels, metadata)]}}


def answer_all(model: Path, questions: list[Question], dtype: str) -> list[str]:
    """The model's answers, decoded greedily, in the order of the questions."""
    os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1")
    from vllm import LLM, SamplingParams  # takes seconds to import

    llm = LLM(
        model=str(model),
        dtype=dtype,
        max_model_len=1024,
        max_num_seqs=16,
        enforce_eager=True,
        limit_mm_per_prompt={"image": 1, "video": 1},
        kv_cache_memory_bytes=_KV_CACHE_BYTES,
        disable_log_stats=True,
    )
    started = time.monotonic()
    outputs = llm.generate(
        [to_request(question) for question in questions],
        SamplingParams(temperature=0, max_tokens=48),
        use_tqdm=False,
    )
    print(f"{len(questions) / (time.monotonic() - started):.1f} answers a second")
    return [output.outputs[0].text for output in outputs]


def report(questions: list[Question], answers: list[str]) -> None:
    """Prints the wrong answers, then how many of each kind are right."""
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for question, answer in zip(questions, answers, strict=True):
        asked[question.kind] += 1
        right[question.kind] += answer == question.answer
        if answer != question.answer:
            size = "x".join(str(side) for side in question.pixels.shape[:-1])
            print(f"wrong: {question.kind} {size}: {question.answer!r} answered as {answer!r}")
    for kind, count in asked.items():
        print(f"{kind}: {right[kind]} of {count} right")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of the exported model")
    parser.add_argument("--count", type=int, default=200, help="fresh drawings of each of the three kinds")
    parser.add_argument("--manifest", type=Path, help="ask the rows of this dataset instead")
    parser.add_argument("--seed", type=int, default=EXAM_SEED)
    parser.add_argument("--dtype", default="float32", help="float32 is the faster one on a CPU")
    options = parser.parse_args()
    questions = read_exam(options.manifest) if options.manifest else draw_exam(options.count, options.seed)
    report(questions, answer_all(options.model, questions, options.dtype))


if __name__ == "__main__":
    main()
