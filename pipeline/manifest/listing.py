"""Which files a manifest's URI stands for: files of rows, or media files, never both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.manifest.manifest import Format
from pipeline.manifest.media_names import extension_of, is_media
from pipeline.storage import FileInfo, Storage, parent, scheme_of

_ROWS = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".tar": Format.TAR,
}
_COMPRESSED = re.compile(r"(\.(jsonl|ndjson|csv|tsv|txt|tar)\.(gz|zst|bz2|xz|zip)|\.tgz)$", re.IGNORECASE)
_HIDDEN = re.compile(r"(^|/)\.")
_MAGIC = re.compile(r"[*?\[]")
_METADATA = re.compile(r"(^|/)metadata\.(jsonl|csv|parquet)$")
_FORMATS = (
    "a manifest is .parquet, .jsonl, .ndjson, .csv, .tsv or .tar, a folder or glob of those, a .txt of URIs, "
    "or a folder or glob of image, video and PDF files"
)


@dataclass(frozen=True)
class Listing:
    """The files of a manifest, sorted by name: `names` are their paths relative to the folder `base`.

    `media` are the paths of media files that lie beside manifest files which describe them; `label` is the
    path of `base` below the folder of a manifest of several URIs.
    """

    base: str
    format: Format
    files: list[FileInfo]
    names: list[str]
    ignored: int
    media: tuple[str, ...] = ()
    label: str = ""


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
    _refuse_compressed(named)
    # Texts lie in many a folder: only who names them has lists of URIs in them.
    formats_of = _ROWS | ({".txt": Format.URLS} if extension_of(uri) == ".txt" else {})
    rows = [(name, info) for name, info in named if extension_of(name) in formats_of]
    media = [(name, info) for name, info in named if is_media(name)]
    rows = _without_logs(rows)
    formats = sorted({formats_of[extension_of(name)] for name, _ in rows})
    if rows and media and not all(_METADATA.search(name) for name, _ in rows):
        raise ConfigError(
            [
                f"manifest.uri: {uri} has both manifest files ({_some([n for n, _ in rows])}) and media "
                f"files ({_some([n for n, _ in media])}); name the manifest file, or a glob such as "
                f"{base}/**/*{extension_of(media[0][0])}"
            ]
        )
    if len(formats) > 1:
        raise ConfigError(
            [
                f"manifest.uri: {uri} has manifest files of several formats ({', '.join(formats)}); "
                f"choose one with a glob such as {base}/**/*.{formats[0]}, or name several in a list"
            ]
        )
    if not rows and not media:
        raise ConfigError([f"manifest.uri: {uri} {_nothing([name for name, _ in named])}"])
    chosen = sorted(rows or media, key=lambda entry: entry[0])
    beside = tuple(name for name, _ in media) if rows else ()
    return Listing(
        base,
        formats[0] if rows else Format.MEDIA,
        [info for _, info in chosen],
        [name for name, _ in chosen],
        len(named) - len(chosen) - len(beside),
        beside,
    )


def _refuse_compressed(named: list[tuple[str, FileInfo]]) -> None:
    compressed = [name for name, _ in named if _COMPRESSED.search(name)]
    if compressed:
        raise ConfigError(
            [
                f"manifest.uri: {_some(compressed)}: a compressed text or tar cannot be read from the middle, "
                "so its rows cannot be shared out; decompress it (gunzip FILE.gz), or convert text to Parquet"
            ]
        )


def _without_logs(rows: list[tuple[str, FileInfo]]) -> list[tuple[str, FileInfo]]:
    """The row files without the Parquet that img2dataset lays beside each tar, of the same name."""
    stems = {name.removesuffix(".tar") for name, _ in rows if name.endswith(".tar")}
    return [(n, i) for n, i in rows if not (n.endswith(".parquet") and n.removesuffix(".parquet") in stems)]


def _nothing(names: list[str]) -> str:
    """Why there is no manifest among the names, and what to do."""
    if any(name.endswith(".arrow") for name in names):
        return (
            "has Arrow files, which datasets' save_to_disk makes: write them as Parquet, "
            "datasets.load_from_disk(FOLDER).to_parquet(FILE)"
        )
    others = f"; what is there: {_some(names)}" if names else ""
    return f"has no manifest or media file{others}; {_FORMATS}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
