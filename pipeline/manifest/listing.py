"""Which files a manifest's URI stands for: files of rows, or media files, never both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.manifest.manifest import Format
from pipeline.storage import FileInfo, Storage, parent, scheme_of

_ROWS = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
}
_IMAGES = frozenset(
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
_VIDEOS = frozenset(
    [".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".wmv", ".flv", ".ogv", ".3gp"]
)
_DOCUMENTS = frozenset([".pdf"])
_COMPRESSED = re.compile(r"\.(jsonl|ndjson|csv|tsv)\.(gz|zst|bz2|xz|zip)$", re.IGNORECASE)
_HIDDEN = re.compile(r"(^|/)\.")
_MAGIC = re.compile(r"[*?\[]")
_FORMATS = (
    "a manifest is .parquet, .jsonl, .ndjson, .csv or .tsv, a folder or glob of those, "
    "or a folder or glob of image, video and PDF files"
)


@dataclass(frozen=True)
class Listing:
    """The files of a manifest, sorted by name: `names` are their paths relative to the folder `base`."""

    base: str
    format: Format
    files: list[FileInfo]
    names: list[str]
    ignored: int


def is_video(path: str) -> bool:
    """Whether a file's extension says that it is a video."""
    return _extension(path) in _VIDEOS


def is_document(path: str) -> bool:
    """Whether a file's extension says that it is a document: each of its pages is a row."""
    return _extension(path) in _DOCUMENTS


def list_files(storage: Storage, uri: str) -> Listing:
    """Find the files that `uri` (a file, a folder, or a glob) stands for. Hidden files are not seen.

    Raises:
        ConfigError: nothing is there, it cannot be listed, or it is no manifest; with the cure.
    """
    try:
        uri = _absolute(storage, uri)
        base, named = _look(storage, uri)
    except FileNotFoundError as error:
        raise ConfigError([f"manifest.uri: {uri} does not exist"]) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError([f"manifest.uri: {uri} cannot be listed: {reason}"]) from error
    return _sort_out(uri, base, named)


def _absolute(storage: Storage, uri: str) -> str:
    """A local path that means the same in every process; any other URI with one spelling of its path."""
    path = str(storage.filesystem(uri)[1])
    if scheme_of(uri) == "file" or "://" in path:
        return path
    return f"{uri.partition('://')[0]}://{path.lstrip('/')}"


def _look(storage: Storage, uri: str) -> tuple[str, list[tuple[str, FileInfo]]]:
    if storage.is_folder(uri):
        base = uri.rstrip("/")
        return base, _named(base, storage.find(uri))
    try:
        # First as a plain name, because `[` and `?` may be part of one.
        return parent(uri), [(uri.rpartition("/")[2], storage.info(uri))]
    except FileNotFoundError:
        magic = _MAGIC.search(uri)
        if magic is None:
            raise
    base = uri[: magic.start()].rpartition("/")[0]
    return base, _named(base, storage.glob(uri))


def _named(base: str, found: list[FileInfo]) -> list[tuple[str, FileInfo]]:
    named = [(info.uri.removeprefix(f"{base}/"), info) for info in found]
    return [(name, info) for name, info in named if not _HIDDEN.search(name)]


def _sort_out(uri: str, base: str, named: list[tuple[str, FileInfo]]) -> Listing:
    compressed = [name for name, _ in named if _COMPRESSED.search(name)]
    if compressed:
        raise ConfigError(
            [
                f"manifest.uri: {_some(compressed)}: a compressed text file cannot be read from the middle, "
                "so its rows cannot be shared out; decompress it (gunzip FILE.gz), or convert it to Parquet"
            ]
        )
    rows = [(name, info) for name, info in named if _extension(name) in _ROWS]
    media = [(name, info) for name, info in named if _extension(name) in _IMAGES | _VIDEOS | _DOCUMENTS]
    formats = sorted({_ROWS[_extension(name)] for name, _ in rows})
    if rows and media:
        raise ConfigError(
            [
                f"manifest.uri: {uri} has both manifest files ({_some([n for n, _ in rows])}) and media "
                f"files ({_some([n for n, _ in media])}); name the manifest file, or a glob such as "
                f"{base}/**/*{_extension(media[0][0])}"
            ]
        )
    if len(formats) > 1:
        raise ConfigError(
            [
                f"manifest.uri: {uri} has manifest files of several formats ({', '.join(formats)}); "
                f"choose one with a glob such as {base}/**/*.{formats[0]}"
            ]
        )
    if not rows and not media:
        others = f"; what is there: {_some([n for n, _ in named])}" if named else ""
        raise ConfigError([f"manifest.uri: {uri} has no manifest or media file{others}; {_FORMATS}"])
    chosen = sorted(rows or media, key=lambda entry: entry[0])
    return Listing(
        base,
        formats[0] if rows else Format.MEDIA,
        [info for _, info in chosen],
        [name for name, _ in chosen],
        len(named) - len(chosen),
    )


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name else ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
