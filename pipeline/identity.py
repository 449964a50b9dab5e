"""What makes media, recipes and items the same: BLAKE2b digests, shown as version-8 UUIDs (RFC 9562)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, scrypt
from typing import Any

from pipeline.segment import Segment


def uuid8(data: bytes) -> str:
    """A version-8 UUID of the data's 128-bit BLAKE2b digest (six bits of it give way to the version)."""
    value = int.from_bytes(blake2b(data, digest_size=16).digest(), "big")
    value = value & ~(0xF << 76) | 8 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def media_uuid(data: bytes) -> str:
    """The identity of a media file: of its bytes alone, wherever it lies and whatever it is called."""
    return uuid8(data)


def object_uuid(uri: str, version: str, segment: Segment | None = None) -> str:
    """The identity of one version of an object: where it is, and what its store says of it unread.

    With `segment` it is of that part of the video in it.
    """
    return uuid8(canonical([uri, version, *([] if segment is None else [segment])]))


def page_uuid(media: str, page: int, password: str | None = None) -> str:
    """The identity of a page (from 1) of the document with the UUID `media`: no two pages share it.

    The password that a row gives is part of it, so that nobody gets another one's answer without it.
    """
    locked = {"key": password_key(password, media)} if password else {}
    return uuid8(canonical({"media": media, "page": page, **locked}))


def segment_uuid(media: str, segment: Segment) -> str:
    """The identity of a part, in seconds, of the video with the UUID `media`."""
    return uuid8(canonical({"media": media, "segment": segment}))


def identified(file: str, page: int | None, password: str | None, segment: Segment | None = None) -> str:
    """The identity of media in the file with the UUID `file`: the file itself, or a page or part of it.

    `segment` is None for what the run shows of every video: that is part of its recipe.
    """
    if segment is not None:
        return segment_uuid(file, segment)
    return file if page is None else page_uuid(file, page, password)


@lru_cache(maxsize=4096)
def password_key(password: str, salt: str) -> str:
    """What stands for a password in an identity: by scrypt, so that a guess costs a 20th of a second."""
    return scrypt(
        password.encode(errors="surrogatepass"), salt=salt.encode(), n=2**14, r=8, p=1, dklen=16
    ).hex()


def pixels_uuid(media: str, settings: Mapping[str, Any]) -> str:
    """The identity of what the model is shown: the media's UUID and every setting that changes its pixels.

    vLLM's caches take it as the whole identity (`multi_modal_uuids`), so two different arrays of pixels
    must never share it.
    """
    return uuid8(canonical({"media": media, "settings": dict(settings)}))


def recipe_id(recipe: Mapping[str, Any]) -> str:
    """The identity of a recipe: 16 hexadecimal digits, the same whatever the order of its fields."""
    return blake2b(canonical(recipe), digest_size=8).hexdigest()


def item_uuid(media: Sequence[str], question: str, answering: Mapping[str, Any]) -> str:
    """The identity of an answer: the media in their order, the question as asked, and how it is answered.

    `answering` is the recipe without the prompts of its tasks, so that another task's prompt does not
    change it.
    """
    return uuid8(canonical({"media": list(media), "question": question, "answering": dict(answering)}))


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and nothing optional: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
