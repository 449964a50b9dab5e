"""Which files a manifest's URI stands for, and what is refused."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from pipeline.manifest import Format

LINE = '{"image": "a.jpg"}\n'


def fill(folder: Path, *names: str, text: str = LINE) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_a_folder_gives_its_manifest_files_in_sorted_order(opened, tmp_path):
    fill(tmp_path, "b.jsonl", "a/z.NDJSON", "README.md", "a/_SUCCESS", ".cache/x.jsonl")
    manifest = opened(tmp_path)
    assert [file.name for file in manifest.files] == ["a/z.NDJSON", "b.jsonl"]
    assert {file.format for file in manifest.files} == {Format.JSONL}
    assert manifest.ignored == 2


def test_a_glob_names_files_relative_to_its_fixed_part(opened, tmp_path):
    fill(tmp_path, "data/x/1.jsonl", "data/y/2.jsonl", "data/y/3.csv")
    manifest = opened(tmp_path / "data/*/*.jsonl")
    assert [file.name for file in manifest.files] == ["x/1.jsonl", "y/2.jsonl"]


def test_brackets_in_a_name_that_exists_are_no_pattern(opened, tmp_path):
    fill(tmp_path, "set [v1].jsonl", "set v.jsonl")
    assert [file.name for file in opened(tmp_path / "set [v1].jsonl").files] == ["set [v1].jsonl"]


def test_a_relative_local_path_is_made_absolute(opened, tmp_path, monkeypatch):
    fill(tmp_path, "in/m.jsonl")
    monkeypatch.chdir(tmp_path)
    assert opened("in/m.jsonl").files[0].uri == f"{tmp_path}/in/m.jsonl"
    assert opened("in").files[0].uri == f"{tmp_path}/in/m.jsonl"
    assert opened("in/*.jsonl").files[0].uri == f"{tmp_path}/in/m.jsonl"
    assert opened(f"file://{tmp_path}/in/m.jsonl").files[0].uri == f"{tmp_path}/in/m.jsonl"


def test_what_is_not_there(problems, tmp_path):
    assert problems(tmp_path / "no.jsonl") == [f"manifest.uri: {tmp_path}/no.jsonl does not exist"]
    (only,) = problems(tmp_path / "*.jsonl")
    assert "has no manifest or media file" in only


def test_an_unknown_scheme_is_a_config_problem(problems):
    (only,) = problems("nosuchscheme://bucket/x.jsonl")
    assert "nosuchscheme://bucket/x.jsonl" in only


def test_manifests_beside_media_are_refused(problems, tmp_path):
    fill(tmp_path, "rows.jsonl", "one.JPG")
    (only,) = problems(tmp_path)
    assert "rows.jsonl" in only
    assert f"{tmp_path}/**/*.jpg" in only


def test_several_formats_are_refused(problems, tmp_path):
    fill(tmp_path, "a.jsonl", "b.csv")
    (only,) = problems(tmp_path)
    assert "csv, jsonl" in only


@pytest.mark.parametrize("name", ["m.jsonl.gz", "m.CSV.GZ", "m.tsv.zst", "m.txt.xz", "m.tar.gz", "m.tgz"])
def test_compressed_text_is_refused_by_name(problems, tmp_path, name):
    fill(tmp_path, name, "m.jsonl")
    for uri in (tmp_path / name, tmp_path):
        (only,) = problems(uri)
        assert name in only
        assert "decompress it" in only


def test_compressed_text_is_refused_by_content(problems, tmp_path):
    (tmp_path / "m.jsonl").write_bytes(gzip.compress(LINE.encode()))
    (only,) = problems(tmp_path / "m.jsonl")
    assert "compressed in spite of its name" in only


def test_another_kind_of_file_is_refused_with_the_formats_there_are(problems, tmp_path):
    fill(tmp_path, "m.xlsx")
    (only,) = problems(tmp_path / "m.xlsx")
    assert "m.xlsx" in only
    assert ".parquet, .jsonl" in only


def test_the_fingerprint_follows_the_file(opened, tmp_path):
    fill(tmp_path, "m.jsonl")
    before = opened(tmp_path / "m.jsonl").files[0].fingerprint
    assert opened(tmp_path).files[0].fingerprint == before
    os.utime(tmp_path / "m.jsonl", (1, 1))
    touched = opened(tmp_path / "m.jsonl").files[0].fingerprint
    fill(tmp_path, "m.jsonl", text=LINE * 2)
    os.utime(tmp_path / "m.jsonl", (1, 1))
    assert len({before, touched, opened(tmp_path / "m.jsonl").files[0].fingerprint}) == 3
