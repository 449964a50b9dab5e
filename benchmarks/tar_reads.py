"""What a run over WebDataset tars reads from S3: bytes and requests, counted by the server.

    python -m benchmarks.tar_reads [--images 10000] [--tars 10]

Each sample is a JPEG of some 11 KB with a caption and a JSON beside it. The server is moto's, behind a counter
of what it answers for the tars; the engine computes nothing, everything else is real.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from moto.server import DomainDispatcherApplication, create_backend_app
from PIL import Image
from werkzeug.serving import make_server

BUCKET = "bucket"


class Counting:
    """A WSGI application that counts what another answers to GETs of tars."""

    def __init__(self, inner: Callable[..., Iterable[bytes]]) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.requests = self.bytes = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        is_tar = environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"].endswith(".tar")

        def counted(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            if is_tar:
                with self._lock:
                    self.requests += 1
                    self.bytes += int(dict(headers)["Content-Length"])
            return start_response(status, headers, *rest)

        return self._inner(environ, counted)

    def taken(self) -> tuple[int, int]:
        """Requests and bytes since the last time."""
        with self._lock:
            found = self.requests, self.bytes
            self.requests = self.bytes = 0
        return found


def main() -> None:
    """Put tars into S3, plan and run over them, and print what was read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--tars", type=int, default=10)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _run(json.loads(arguments.child))
        return
    application = Counting(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        config = _config(f"http://127.0.0.1:{server.server_port}", folder, arguments.tars)
        size = _upload(config, arguments.images, arguments.tars)
        print(f"{arguments.images:,} images in {arguments.tars} tars, {size:,} bytes")
        for what in ("plan", "run"):
            application.taken()
            started = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.tar_reads", "--child"]
            subprocess.run([*command, json.dumps(config | {"what": what})], check=True)
            requests, read = application.taken()
            print(
                f"{what:5} {requests:7,} requests, {read:13,} bytes: {read / size:.3f} of the tars "
                f"({time.perf_counter() - started:.0f} s)",
                flush=True,
            )
    server.shutdown()


def _config(endpoint: str, folder: str, tars: int) -> dict[str, Any]:
    keys = {"access_key_id": "key", "secret_access_key": "secret"}
    return {
        "manifest": {
            "uri": f"s3://{BUCKET}/{{00000..{tars - 1:05d}}}.tar",
            "keep": ["txt", "json.width"],
        },
        "model": {"type": "qwen2_5_vl"},
        "prompt": "Describe this image.",
        "engine": {"kind": "echo"},
        "output": {"uri": f"{folder}/out", "batch_rows": 128, "shard_rows": 512},
        "storage": {"s3": {"endpoint_url": endpoint, "region": "eu-west-1", **keys}},
    }


def _upload(config: dict[str, Any], images: int, tars: int) -> int:
    from pipeline.config import StorageConfig
    from pipeline.storage import Storage

    fs, _ = Storage(StorageConfig.model_validate(config["storage"])).filesystem(f"s3://{BUCKET}")
    fs.mkdir(BUCKET)
    chance = np.random.default_rng(0)
    size = 0
    for tar in range(tars):
        data = _tar(chance, range(tar * images // tars, (tar + 1) * images // tars))
        fs.pipe_file(f"{BUCKET}/{tar:05d}.tar", data)
        size += len(data)
    return size


def _tar(chance: np.random.Generator, numbers: Iterable[int]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for number in numbers:
            picture = io.BytesIO()
            pixels = chance.integers(0, 256, (96, 128, 3), np.uint8)
            Image.fromarray(pixels).save(picture, "JPEG", quality=85)
            members = {
                "jpg": picture.getvalue(),
                "json": json.dumps({"width": 128, "height": 96, "key": number}).encode(),
                "txt": f"picture {number}".encode(),
            }
            for extension, data in members.items():
                info = tarfile.TarInfo(f"{number:09d}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return sink.getvalue()


def _run(config: dict[str, Any]) -> None:
    from pipeline.config import RunConfig
    from pipeline.config_file import LoadedConfig
    from pipeline.plan import make_plan
    from pipeline.run import run

    what = config.pop("what")
    loaded = LoadedConfig(RunConfig.model_validate(config), config)
    if what == "plan":
        make_plan(loaded)
        return
    summary = run(loaded)
    assert summary.ok == summary.rows, summary


if __name__ == "__main__":
    main()
