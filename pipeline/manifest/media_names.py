"""What a file's name says about its content: image, video, document, or none of them."""

from __future__ import annotations

IMAGES = frozenset(
    [
        ".jpg",
        ".jpeg",
        ".jpe",
        ".png",
        ".webp",
        ".gif",
        ".bmp",
        ".tif",
        ".tiff",
        ".avif",
        ".heic",
        ".heif",
        ".jp2",
    ]
)
VIDEOS = frozenset(
    [".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".wmv", ".flv", ".ogv", ".3gp"]
)
DOCUMENTS = frozenset([".pdf"])


def extension_of(path: str) -> str:
    """The extension with its dot, in lower case; empty if there is none."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name else ""


def is_image(path: str) -> bool:
    """Whether a file's extension says that it is an image."""
    return extension_of(path) in IMAGES


def is_video(path: str) -> bool:
    """Whether a file's extension says that it is a video."""
    return extension_of(path) in VIDEOS


def is_document(path: str) -> bool:
    """Whether a file's extension says that it is a document: each of its pages is a row."""
    return extension_of(path) in DOCUMENTS


def is_media(path: str) -> bool:
    """Whether a file's extension says that it is any of them."""
    return is_image(path) or is_video(path) or is_document(path)
