"""From a file's bytes to a model's media: through the child process, with the right identity."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from pipeline.config import MediaConfig
from pipeline.errors import Code, ItemError
from pipeline.identity import media_uuid
from pipeline.media.load import MediaLoader
from pipeline.models.registry import load_spec
from tests.media.clips import clip, seen
from tests.media.made import saved

SEGFAULT = (Path(__file__).parent / "data" / "decord_segfault.mp4").read_bytes()


def loader(**media: object) -> MediaLoader:
    return MediaLoader.of(MediaConfig.model_validate(media), load_spec("qwen2_5_vl"))


def test_media_come_through_the_child_as_they_are_decoded_here() -> None:
    apart = loader()
    here = replace(apart, limits=None)
    picture = saved(Image.effect_noise((300, 200), 80))
    for kind, data in (("image", picture), ("video", clip())):
        uuid, media = apart.load(kind, data)
        _, expected = here.load(kind, data)
        assert uuid == media_uuid(data)
        assert (media.kind, media.uuid, media.metadata) == (kind, expected.uuid, expected.metadata)
        assert (media.pixels == expected.pixels).all()
    assert seen(media.pixels)[-1] == 49


@pytest.mark.parametrize(
    ("backend", "codes"),
    [
        ("auto", {Code.DECODE_CORRUPT}),
        # decord writes beyond its memory here: that kills its process only where the memory is another's.
        ("decord", {Code.DECODE_CRASH, Code.DECODE_CORRUPT}),
    ],
)
def test_a_file_that_may_kill_its_decoder_costs_itself(backend: str, codes: set[Code]) -> None:
    one = loader(video={"backend": backend})
    for _ in range(2):
        with pytest.raises(ItemError) as caught:
            one.load("video", SEGFAULT)
        assert caught.value.code in codes
        assert one.load("image", saved(Image.new("RGB", (8, 8), "#0000ff")))[1].pixels[0, 0].tolist() == [
            0,
            0,
            255,
        ]


def test_the_limits_of_the_configuration_hold() -> None:
    large = saved(Image.new("RGB", (5000, 5000)))
    with pytest.raises(ItemError) as caught:
        loader(decode_seconds=0.03).load("image", large)
    assert caught.value.code is Code.DECODE_TIMEOUT
    with pytest.raises(ItemError) as caught:
        loader(decode_memory=150 * 2**20).load("image", large)
    assert caught.value.code is Code.TOO_LARGE
    assert "decode_memory" in caught.value.reason


def test_damaged_media_are_recovered_only_on_request_and_under_the_same_name() -> None:
    picture = saved(Image.effect_noise((300, 200), 80), "JPEG")[:-2]
    with pytest.raises(ItemError):
        loader().load("image", picture)
    assert loader(damaged="recover").load("image", picture)[1].pixels.shape == (200, 300, 3)
    whole = saved(Image.effect_noise((30, 20), 80), "JPEG")
    assert loader(damaged="recover").load("image", whole)[1].uuid == loader().load("image", whole)[1].uuid


def test_what_changes_pixels_changes_their_identity() -> None:
    data = clip(frames=3)
    uuids = {
        one.load("video", data)[1].uuid
        for one in (loader(), loader(video={"backend": "decord"}), loader(video={"num_frames": 2}))
    }
    assert len(uuids) == 3
    assert loader(video={"backend": "pyav"}).settings("video") == loader().settings("video")
    for setting in ({"decode_seconds": 5}, {"decode_memory": 2**31}, {"damaged": "recover"}):
        assert loader(**setting).settings("video") == loader().settings("video")
