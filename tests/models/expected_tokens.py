"""What a picture and a clip become in each tiny model, worked out by hand from its geometry.

All pictures and frames are 192 x 128 pixels; a clip gives 8 frames. What is here is what may be called proven.
"""

from __future__ import annotations

from typing import Any

_QWEN_28 = {"image": ("<|image_pad|>", 7 * 5), "video": ("<|video_pad|>", 4 * 7 * 5)}
"""28 pixels a token: 192/28 = 6.86 and 128/28 = 4.57, so 7 x 5; two frames share their tokens."""
_QWEN_32 = {"image": ("<|image_pad|>", 6 * 4), "video": ("<|video_pad|>", 4 * 6 * 4)}
_GLM = {"image": ("<|image|>", 7 * 5), "video": ("<|image|>", 4 * 7 * 5)}
_TILES = {"image": ("<IMG_CONTEXT>", (3 * 2 + 1) * 2 * 2)}
"""Cut into 3 x 2 tiles, and the whole, each of 2 x 2."""

EXPECTED: dict[str, dict[str, tuple[str, int]]] = {
    # The tiles as InternVL's, each introduced by its number.
    "NVLM_D": {"image": ("<|vision_pad|>", (3 * 2 + 1) * 2 * 2)},
    # Queries, as many for every picture: it is enlarged to 980 pixels, which is 10 x 10 patches and 8 queries.
    "aria": {"image": ("<|img|>", 8)},
    "blip-2": {"image": ("<image>", 4)},
    # 2 x 2 tiles of 2 x 2, and the whole.
    "command_a_vision": {"image": ("<|IMG_PATCH|>", (2 * 2 + 1) * 2 * 2)},
    "eagle2_5": _TILES,
    "exaone4_5": _QWEN_28,
    # 2 x 2; a crop must be 256 pixels wide to be taken.
    "gemma3": {"image": ("<image_soft_token>", 4)},
    # At most 70 of the picture's form, which is 10 x 6; each frame has its own.
    "gemma4": {"image": ("<|image|>", 10 * 6), "video": ("<|video|>", 8 * 10 * 6)},
    "glm4_1v": _GLM,
    "glm4_5v": _GLM,
    "glm_ocr": _GLM,
    "h2ovl_chat": _TILES,
    # Enlarged to 1092 x 728: 3 x 2 tiles of 364 pixels and the whole, each of 2 x 2.
    "idefics3": {"image": ("<image>", (3 * 2 + 1) * 2 * 2)},
    # A frame is one tile.
    "interns1": {**_TILES, "video": ("<video>", 8 * 2 * 2)},
    "internvl_chat": {**_TILES, "video": ("<|video_pad|>", 8 * 2 * 2)},
    # 32 pixels a token.
    "lfm2_vl": {"image": ("<image>", 6 * 4)},
    "lightonocr": {"image": ("<|image_pad|>", 7 * 5)},
    # 2 x 2 tiles of 2 x 2, and the whole.
    "llama4": {"image": ("<|patch|>", (2 * 2 + 1) * 2 * 2)},
    # 56 x 56 pixels of 14 x 14, whatever the picture.
    "llava": {"image": ("<image>", 4 * 4)},
    # The whole as 4 x 4, then 2 x 2 tiles: 8 columns and, the padding off, 6 rows, each ended by one token.
    "llava-next": {"image": ("<image>", 4 * 4 + 6 * (8 + 1))},
    # A frame is 16 x 16 pooled to 8 x 8.
    "llava-next-video": {"video": ("<video>", 8 * 8 * 8)},
    # As LLaVA-NeXT; a frame is 4 x 4 pooled to 2 x 2, and one token ends the clip.
    "llava-onevision": {"image": ("<image>", 4 * 4 + 6 * (8 + 1)), "video": ("<video>", 8 * 2 * 2 + 1)},
    "mistral3": {"image": ("[IMG]", 7 * 5)},
    # 4 x 4, whatever the picture.
    "paligemma": {"image": ("<image>", 4 * 4)},
    "paligemma2": {"image": ("<image>", 4 * 4)},
    # 16 pixels a token.
    "pixtral_hf": {"image": ("[IMG]", 12 * 8)},
    "qwen2_vl": _QWEN_28,
    "qwen2_5_vl": _QWEN_28,
    "qwen2_5_omni": {"image": ("<|IMAGE|>", 7 * 5), "video": ("<|VIDEO|>", 4 * 7 * 5)},
    "qwen3_vl": _QWEN_32,
    "qwen3_vl_moe": _QWEN_32,
    "qwen3_5": _QWEN_32,
    "qwen3_5_moe": _QWEN_32,
    "skywork_chat": _TILES,
    # Enlarged to 768 x 512: 2 x 2 tiles of 384 pixels and the whole, each of 3 x 3.
    "smolvlm": {"image": ("<image>", (2 * 2 + 1) * 3 * 3)},
}

SHORT = [
    "internvl_chat",
    "llama4",
    "llava",
    "llava-onevision",
    "paligemma2",
    "qwen2_5_vl",
    "qwen3_vl",
    "smolvlm",
]
"""What `make test` runs; `make prove-models` runs all."""

STOP_TOKENS = {"aria": 6, "eagle2_5": 3, "h2ovl_chat": 1, "internvl_chat": 3, "skywork_chat": 2}
"""How many stop tokens reach the engine: InternVL names four, the tokenizer has three; Aria one twice."""


def media_tokens(name: str, images: int, videos: int) -> dict[str, int]:
    """How often each media token stands in a prompt of so many images and videos."""
    counts: dict[str, int] = {}
    for kind, times in (("image", images), ("video", videos)):
        if times:
            token, count = EXPECTED[name][kind]
            counts[token] = counts.get(token, 0) + times * count
    return counts


def of_media(name: str, special_tokens: dict[str, Any]) -> dict[str, Any]:
    """The media tokens among a prompt's special tokens."""
    tokens = {token for token, _ in EXPECTED[name].values()}
    return {token: count for token, count in special_tokens.items() if token in tokens}
