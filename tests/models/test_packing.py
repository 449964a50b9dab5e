"""Requests to vLLM: every media has its placeholder and its UUID, in lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.models.packing import LoadedMedia, pack
from pipeline.models.prompt import PromptBuilder
from pipeline.models.registry import load_spec

METADATA = {"fps": 2.0, "total_num_frames": 4}


def image(uuid: str, level: int = 7) -> LoadedMedia:
    return LoadedMedia("image", uuid, np.full((4, 6, 3), level, np.uint8))


def video(uuid: str) -> LoadedMedia:
    return LoadedMedia("video", uuid, np.zeros((2, 4, 6, 3), np.uint8), METADATA)


def packed(name: str, *media: LoadedMedia, limit: int = 8) -> dict[str, Any]:
    return pack(PromptBuilder(load_spec(name)), "What?", media, limit)


def test_one_image_still_comes_in_lists() -> None:
    request = packed("llava", image("u1"))
    assert set(request) == {"prompt", "multi_modal_data", "multi_modal_uuids"}
    assert request["prompt"] == "USER: <image>\nWhat?\nASSISTANT:"
    assert request["multi_modal_uuids"] == {"image": ["u1"]}
    (picture,) = request["multi_modal_data"]["image"]
    assert isinstance(picture, Image.Image)
    assert (picture.size, picture.mode, picture.getpixel((0, 0))) == ((6, 4), "RGB", (7, 7, 7))


def test_several_images_keep_their_order_and_their_uuids() -> None:
    request = packed("qwen2_5_vl", image("u1", 1), image("u2", 2), image("u3", 3))
    assert request["multi_modal_uuids"] == {"image": ["u1", "u2", "u3"]}
    assert [p.getpixel((0, 0))[0] for p in request["multi_modal_data"]["image"]] == [1, 2, 3]
    assert request["prompt"].count("<|image_pad|>") == 3


def test_a_video_brings_its_metadata_where_the_model_needs_it() -> None:
    request = packed("qwen3_vl", video("v1"))
    assert request["multi_modal_uuids"] == {"video": ["v1"]}
    ((frames, metadata),) = request["multi_modal_data"]["video"]
    assert (frames.shape, metadata) == ((2, 4, 6, 3), METADATA)


def test_a_video_comes_as_bare_frames_where_it_does_not() -> None:
    (frames,) = packed("llava-onevision", video("v1"))["multi_modal_data"]["video"]
    assert isinstance(frames, np.ndarray)
    assert frames.shape == (2, 4, 6, 3)


@pytest.mark.parametrize("media", [(image("u1"), video("v1")), (video("v1"), image("u1"))])
def test_image_and_video_each_have_their_own_list(media: tuple[LoadedMedia, ...]) -> None:
    request = packed("llava-onevision", *media)
    assert request["multi_modal_uuids"] == {"image": ["u1"], "video": ["v1"]}
    assert set(request["multi_modal_data"]) == {"image", "video"}
    assert request["prompt"].startswith("<|im_start|>user <image>\n<video>\nWhat?")


def test_too_many_images() -> None:
    packed("qwen2_5_vl", image("u1"), image("u2"), limit=2)
    with pytest.raises(ItemError) as refused:
        packed("qwen2_5_vl", image("u1"), image("u2"), image("u3"), limit=2)
    assert refused.value.code == Code.TOO_MANY_MEDIA
    assert refused.value.reason == "the item has 3 images, at most 2 (media.max_per_item)"


def test_a_second_video_is_too_many_whatever_the_limit() -> None:
    with pytest.raises(ItemError) as refused:
        packed("qwen2_5_vl", video("v1"), video("v2"), limit=8)
    assert refused.value.code == Code.TOO_MANY_MEDIA
    assert refused.value.reason == "the item has 2 videos, at most 1"


def test_no_media_is_no_request() -> None:
    with pytest.raises(ItemError) as refused:
        packed("qwen2_5_vl")
    assert refused.value.code == Code.MISSING_MEDIA


def test_a_modality_that_the_model_lacks() -> None:
    with pytest.raises(ItemError) as refused:
        packed("llava", video("v1"))
    assert refused.value.code == Code.MODALITY_NOT_SUPPORTED


def test_no_more_images_than_the_model_takes() -> None:
    with pytest.raises(ItemError) as refused:
        packed("glm4v", image("u1"), image("u2"), limit=8)
    assert refused.value.reason == "the item has 2 images, at most 1 (the model takes no more)"


def test_a_vision_chunk_is_an_image_under_another_name() -> None:
    request = packed("kimi_k25", image("u1", 1), image("u2", 2))
    assert request["multi_modal_uuids"] == {"vision_chunk": ["u1", "u2"]}
    chunks = request["multi_modal_data"]["vision_chunk"]
    assert [(chunk["type"], chunk["uuid"]) for chunk in chunks] == [("image", "u1"), ("image", "u2")]
    assert [chunk["image"].getpixel((0, 0))[0] for chunk in chunks] == [1, 2]
    assert request["prompt"].count("<|media_pad|>") == 2
