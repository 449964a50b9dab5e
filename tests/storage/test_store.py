"""Storage: what may be read, within which bounds, and files put whole; on a disk and on an S3 server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.config import StorageConfig
from pipeline.errors import Code, ItemError
from pipeline.storage import Storage
from tests.conftest import S3_SECRET, S3Server


def code_of(storage: Storage, uri: str, max_bytes: int = 100) -> Code:
    with pytest.raises(ItemError) as raised:
        storage.fetch(uri, max_bytes)
    assert S3_SECRET not in str(raised.value)
    return raised.value.code


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"0123456789")
    (folder / "empty.jpg").touch()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.jpg").symlink_to(tmp_path / "secret.txt")
    return folder


def test_local_fetch(pictures: Path) -> None:
    storage = Storage(root=str(pictures))
    assert storage.fetch(f"{pictures}/a.jpg", 10).data == b"0123456789"
    assert storage.fetch(f"file://{pictures}/a.jpg", 10).data == b"0123456789"
    assert code_of(storage, f"{pictures}/a.jpg", 9) == Code.TOO_LARGE
    assert code_of(storage, f"{pictures}/empty.jpg") == Code.EMPTY_FILE
    assert code_of(storage, f"{pictures}/none.jpg") == Code.FETCH_NOT_FOUND
    assert code_of(storage, str(pictures)) == Code.FETCH_NOT_FOUND


def test_a_manifest_reads_neither_outside_of_its_folder_nor_by_other_schemes(pictures: Path) -> None:
    storage = Storage(root=str(pictures))
    for uri in (f"{pictures}/../secret.txt", f"{pictures}/link.jpg", "/etc/passwd", "file:///etc/passwd"):
        assert code_of(storage, uri) == Code.PATH_NOT_ALLOWED
    for uri in ("http://127.0.0.1/x", "ftp://h/x", "github://x", "data://x", f"FILE2://{pictures}/a.jpg"):
        assert code_of(storage, uri) == Code.SCHEME_NOT_ALLOWED
    assert code_of(Storage(root=None), f"{pictures}/a.jpg") == Code.PATH_NOT_ALLOWED
    wider = Storage(StorageConfig(allowed_roots=[str(pictures.parent)]), root=str(pictures))
    assert wider.fetch(f"{pictures}/../secret.txt", 10).data == b"secret"


def test_a_folder_whose_name_begins_like_the_root_is_outside(pictures: Path) -> None:
    neighbour = pictures.parent / "data-of-others"
    neighbour.mkdir()
    (neighbour / "b.jpg").write_bytes(b"x")
    assert code_of(Storage(root=str(pictures)), f"{neighbour}/b.jpg") == Code.PATH_NOT_ALLOWED


def test_s3_like_a_disk(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage, s3_server.make_bucket()
    storage.put(f"{bucket}/in/a b#.jpg", b"0123456789")
    storage.put(f"{bucket}/in/deep/empty.jpg", b"")
    assert storage.fetch(f"{bucket}/in/a b#.jpg", 10).data == b"0123456789"
    assert code_of(storage, f"{bucket}/in/a b#.jpg", 9) == Code.TOO_LARGE
    assert code_of(storage, f"{bucket}/in/deep/empty.jpg") == Code.EMPTY_FILE
    assert code_of(storage, f"{bucket}/in/none.jpg") == Code.FETCH_NOT_FOUND
    assert code_of(storage, f"{bucket}-none/x.jpg") == Code.FETCH_NOT_FOUND
    assert code_of(storage, "/etc/passwd") == Code.PATH_NOT_ALLOWED
    found = storage.find(f"{bucket}/in")
    assert [(file.uri, file.size) for file in found] == [
        (f"{bucket}/in/a b#.jpg", 10),
        (f"{bucket}/in/deep/empty.jpg", 0),
    ]
    assert all(file.etag and file.mtime for file in found)
    assert [file.uri for file in storage.glob(f"{bucket}/in/*.jpg")] == [f"{bucket}/in/a b#.jpg"]
    assert storage.is_folder(f"{bucket}/in")
    with pytest.raises(FileNotFoundError):
        storage.info(f"{bucket}/in/none.jpg")
    storage.remove([f"{bucket}/in/a b#.jpg"])
    assert storage.find(f"{bucket}/in/none") == []


def test_wrong_keys_are_denied_and_unreachable_servers_are_retryable(s3_server: S3Server) -> None:
    closed = StorageConfig.model_validate({"s3": {"endpoint_url": "http://127.0.0.1:9", "anonymous": True}})
    with pytest.raises(ItemError) as raised:
        Storage(closed).fetch("s3://bucket/x.jpg", 10)
    assert raised.value.code is Code.FETCH_FAILED
    assert raised.value.code.retryable


def test_the_version_of_a_local_file_is_its_size_and_time(pictures: Path) -> None:
    storage, path = Storage(root=str(pictures)), pictures / "a.jpg"
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    assert storage.version(str(path)) == "10:1700000000123456789"
    assert storage.fetch(str(path), 10).version == "10:1700000000123456789"
    path.write_bytes(b"9876543210")
    assert storage.version(str(path)) != "10:1700000000123456789"
    with pytest.raises(ItemError) as raised:
        storage.version(f"{pictures}/none.jpg")
    assert raised.value.code is Code.FETCH_NOT_FOUND


def test_the_version_of_an_object_is_its_size_and_etag(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage, s3_server.make_bucket()
    storage.put(f"{bucket}/a.jpg", b"0123456789")
    # The ETag of an object put in one piece is the MD5 of its bytes.
    assert storage.version(f"{bucket}/a.jpg") == "10:781e5e245d69b566979b86e28d23f2c7"
    assert storage.fetch(f"{bucket}/a.jpg", 10).version == "10:781e5e245d69b566979b86e28d23f2c7"
    with pytest.raises(ItemError) as raised:
        storage.version(f"{bucket}/none.jpg")
    assert raised.value.code is Code.FETCH_NOT_FOUND
