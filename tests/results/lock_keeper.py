"""A process that takes a lock, says so, and holds it until it is killed or its standard input ends."""

from __future__ import annotations

import json
import sys

from pipeline.config import StorageConfig
from pipeline.results.lock import Lock
from pipeline.storage import Storage


def main(folder: str, interval: str, config: str) -> None:
    """Hold the lock of `folder`; `config` is the storage's configuration as JSON."""
    storage = Storage(StorageConfig.model_validate(json.loads(config)))
    with Lock(storage, folder, interval=float(interval)):
        print("held", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
