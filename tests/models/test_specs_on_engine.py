"""Each spec of conf/models on a tiny model of its architecture, through vLLM's real engine.

How many tokens a picture becomes is worked out here by hand, so that a spec whose arguments or placeholders
do not reach the model is noticed. All pictures and frames are 192 x 128 pixels; a clip gives 8 frames.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from pipeline.models.registry import load_spec, model_types
from tests.models.tiny_engine import Files, Session, ask

WIDTH, HEIGHT, FRAMES = 192, 128, 8
# A manifest's text is untrusted: special tokens of any model that are no placeholders must not count as media.
QUESTION = "What is <|vision_start|><|vision_end|><img></img><fake_token_around_image><global-img> this?"

EXPECTED: dict[str, dict[str, tuple[str, int]]] = {
    # 28 pixels a token: 192/28 = 6.86 and 128/28 = 4.57, so 7 x 5; two frames share their tokens.
    "qwen2_5_vl": {"image": ("<|image_pad|>", 7 * 5), "video": ("<|video_pad|>", 4 * 7 * 5)},
    # 32 pixels a token.
    "qwen3_vl": {"image": ("<|image_pad|>", 6 * 4), "video": ("<|video_pad|>", 4 * 6 * 4)},
    # 56 x 56 pixels of 14 x 14, whatever the picture.
    "llava": {"image": ("<image>", 4 * 4)},
    # The whole as 4 x 4, then 2 x 2 tiles: 8 columns and, the padding off, 6 rows, each ended by one token.
    # A frame is 4 x 4 pooled to 2 x 2; one token ends the clip.
    "llava-onevision": {"image": ("<image>", 4 * 4 + 6 * (8 + 1)), "video": ("<video>", 8 * 2 * 2 + 1)},
    # Enlarged to 768 x 512: 2 x 2 tiles of 384 pixels and the whole, each of 3 x 3.
    "smolvlm": {"image": ("<image>", (2 * 2 + 1) * 3 * 3)},
    # Cut into 3 x 2 tiles, and the whole, each of 2 x 2; a frame is one tile.
    "internvl_chat": {"image": ("<IMG_CONTEXT>", (3 * 2 + 1) * 2 * 2), "video": ("<|video_pad|>", 8 * 2 * 2)},
}


def picture(seed: int, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    out = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(out, "PNG")
    return out.getvalue()


def clip(seed: int) -> bytes:
    out = io.BytesIO()
    chance = np.random.default_rng(seed)
    with av.open(out, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(8))
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for _ in range(2 * FRAMES):
            frame = np.full((HEIGHT, WIDTH, 3), chance.integers(0, 256, 3), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return out.getvalue()


CASES: dict[str, Callable[[], Files]] = {
    "image": lambda: [("image", picture(1))],
    "image again": lambda: [("image", picture(1))],
    "other image": lambda: [("image", picture(2))],
    "small image": lambda: [("image", picture(1, 64, 32))],
    "two images": lambda: [("image", picture(1)), ("image", picture(2))],
    "video": lambda: [("video", clip(1))],
    "other video": lambda: [("video", clip(2))],
    "image+video": lambda: [("image", picture(1)), ("video", clip(1))],
}


def cases_of(spec_name: str) -> list[str]:
    kinds = load_spec(spec_name).modalities
    return [
        case
        for case in CASES
        if ("video" in kinds or "video" not in case) and ("image+video" in kinds or case != "image+video")
    ]


@pytest.fixture(scope="module")
def vllm_process() -> Iterator[ProcessPoolExecutor]:
    """One process for all engines, one after another: importing vLLM takes longer than starting one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module", params=model_types())
def spec_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def session(spec_name: str, vllm_process: ProcessPoolExecutor) -> Session:
    from tests.tiny import tiny_model

    # SmolVLM's processor needs num2words; Idefics3 stands for it where that is not installed.
    tiny = "idefics3" if spec_name == "smolvlm" and find_spec("num2words") is None else spec_name
    files = [CASES[case]() for case in cases_of(spec_name)]
    return vllm_process.submit(ask, spec_name, tiny_model(tiny), QUESTION, files).result()


@pytest.fixture(scope="module")
def replies(spec_name: str, session: Session) -> dict[str, Any]:
    return dict(zip(cases_of(spec_name), session.replies, strict=True))


def test_every_spec_has_its_numbers() -> None:
    assert sorted(EXPECTED) == model_types()
    assert {name: list(load_spec(name).media) for name in EXPECTED} == {
        name: list(tokens) for name, tokens in EXPECTED.items()
    }


def test_pictures_become_the_tokens_worked_out_by_hand(spec_name: str, replies: dict[str, Any]) -> None:
    expected = EXPECTED[spec_name]
    image, count = expected["image"]
    assert replies["image"].media_tokens == {image: count}
    assert replies["two images"].media_tokens == {image: 2 * count}
    if "video" in expected:
        video, video_count = expected["video"]
        assert replies["video"].media_tokens == {video: video_count}
        assert replies["image+video"].media_tokens == {image: count, video: video_count}


def test_the_engine_arguments_of_the_spec_reach_the_processor(spec_name: str, replies: dict[str, Any]) -> None:
    # By the tiny models' own settings Qwen makes 4 tokens of this picture; the spec's `min_pixels` lets it be.
    # (SmolVLM's `max_image_size` is in the number of its tiles: its own setting would make one of them.)
    if spec_name in ("qwen2_5_vl", "qwen3_vl"):
        assert replies["small image"].media_tokens == {"<|image_pad|>": 2 * 1}


def test_every_case_is_answered(replies: dict[str, Any]) -> None:
    assert {case: bool(reply.tokens) for case, reply in replies.items()} == dict.fromkeys(replies, True)


def test_the_same_picture_again_is_answered_the_same(replies: dict[str, Any]) -> None:
    # The second time it comes from vLLM's caches, by its UUID.
    assert replies["image"].tokens == replies["image again"].tokens
    assert replies["image"].logprob == pytest.approx(replies["image again"].logprob, abs=1e-3)


def test_the_model_sees_the_pixels(replies: dict[str, Any]) -> None:
    assert abs(replies["image"].logprob - replies["other image"].logprob) > 1e-3
    if "video" in replies:
        assert abs(replies["video"].logprob - replies["other video"].logprob) > 1e-3


def test_stop_tokens_reach_the_engine(spec_name: str, session: Session) -> None:
    # InternVL names four, of which the tokenizer has three; no other spec names any.
    assert len(session.stop_token_ids) == (3 if spec_name == "internvl_chat" else 0)
