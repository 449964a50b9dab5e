"""Specs of conf/models on tiny models of their architectures, through vLLM's real engine.

How many tokens a picture becomes is worked out by hand (`expected_tokens`), so that a spec whose arguments or
placeholders do not reach the model is noticed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from pipeline.models.registry import load_spec, model_types
from tests.models.expected_tokens import EXPECTED, SHORT, STOP_TOKENS, media_tokens, of_media
from tests.models.tiny_engine import Files, Session, ask

WIDTH, HEIGHT, FRAMES = 192, 128, 8
# A manifest's text is untrusted: special tokens of any model that are no placeholders must not count as media.
QUESTION = "What is <|vision_start|><|vision_end|><img></img><fake_token_around_image><global-img> this?"

PROVED = sorted(EXPECTED) if os.environ.get("PROVE_MODELS") == "all" else SHORT


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
    modalities = load_spec(spec_name).modalities
    needed = {case: "+".join(k for k in ("image", "video") if k in case) for case in CASES}
    single = {kind for kind, media in load_spec(spec_name).media.items() if media.most == 1}
    return [
        case
        for case in CASES
        if needed[case] in modalities and not (case == "two images" and "image" in single)
    ]


@pytest.fixture(scope="module", params=PROVED)
def spec_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def session(spec_name: str, vllm_process: ProcessPoolExecutor) -> Session:
    from tests.tiny import tiny_model

    files = [CASES[case]() for case in cases_of(spec_name)]
    return vllm_process.submit(ask, spec_name, tiny_model(spec_name), QUESTION, files).result()


@pytest.fixture(scope="module")
def replies(spec_name: str, session: Session) -> dict[str, Any]:
    return dict(zip(cases_of(spec_name), session.replies, strict=True))


def test_what_is_called_proven_is_what_is_run_here() -> None:
    assert {name for name in model_types() if load_spec(name).proven} - {"auto"} == set(EXPECTED)
    assert {name: list(load_spec(name).media) for name in EXPECTED} == {
        name: list(tokens) for name, tokens in EXPECTED.items()
    }
    assert set(SHORT) <= set(EXPECTED)


def test_media_become_the_tokens_worked_out_by_hand(spec_name: str, replies: dict[str, Any]) -> None:
    for case, reply in replies.items():
        if case != "small image":
            files = CASES[case]()
            counts = [sum(kind == one for kind, _ in files) for one in ("image", "video")]
            assert of_media(spec_name, reply.special_tokens) == media_tokens(spec_name, *counts), case


def test_the_engine_arguments_of_the_spec_reach_the_processor(spec_name: str, replies: dict[str, Any]) -> None:
    # By the tiny models' own settings Qwen makes 4 tokens of this picture; the spec's `min_pixels` lets it be.
    # (SmolVLM's `max_image_size` and Idefics3's `size` are in the number of their tiles.)
    if spec_name.startswith(("qwen2", "qwen3", "exaone")):
        token, _ = EXPECTED[spec_name]["image"]
        assert replies["small image"].special_tokens[token] == 2 * 1


def test_every_case_is_answered(replies: dict[str, Any]) -> None:
    assert {case: bool(reply.tokens) for case, reply in replies.items()} == dict.fromkeys(replies, True)


def test_the_same_picture_again_is_answered_the_same(replies: dict[str, Any]) -> None:
    # The second time it comes from vLLM's caches, by its UUID.
    if "image" in replies:
        assert replies["image"].tokens == replies["image again"].tokens
        assert replies["image"].logprob == pytest.approx(replies["image again"].logprob, abs=1e-3)


def test_the_model_sees_the_pixels(replies: dict[str, Any]) -> None:
    for one, other in (("image", "other image"), ("video", "other video")):
        if one in replies:
            assert abs(replies[one].logprob - replies[other].logprob) > 1e-3


def test_stop_tokens_reach_the_engine(spec_name: str, session: Session) -> None:
    assert len(session.stop_token_ids) == STOP_TOKENS.get(spec_name, 0)


def test_metadata_of_videos_is_given_where_vllm_demands_it(spec_name: str, session: Session) -> None:
    video = load_spec(spec_name).media.get("video")
    if video is not None:
        assert video.needs_metadata == session.needs_metadata
