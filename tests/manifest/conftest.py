"""What the tests of manifests share: a storage, and a whole reading of a manifest in random pieces."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.config import ManifestConfig
from pipeline.errors import ConfigError
from pipeline.manifest import Manifest, open_manifest, read, row_schema, shards
from pipeline.storage import Storage


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def opened(storage: Storage) -> Callable[..., Manifest]:
    def open_it(uri: Any, reserved: tuple[str, ...] = (), **config: Any) -> Manifest:
        uris = list(map(str, uri)) if isinstance(uri, list) else str(uri)
        return open_manifest(storage, ManifestConfig(uri=uris, **config), reserved)

    return open_it


@pytest.fixture
def problems(opened: Callable[..., Manifest]) -> Callable[..., list[str]]:
    """The problems of a manifest that cannot be opened."""

    def of(uri: Any, **options: Any) -> list[str]:
        with pytest.raises(ConfigError) as refused:
            opened(uri, **options)
        return refused.value.problems

    return of


@pytest.fixture
def all_rows(storage: Storage) -> Callable[..., list[dict[str, Any]]]:
    """All rows of a manifest, through pickled shards of random sizes, each in random ranges."""

    def rows_of(manifest: Manifest, seed: int = 0, shard_rows: int | None = None) -> list[dict[str, Any]]:
        chance = random.Random(seed)
        cut = shards(manifest, shard_rows or chance.randint(1, max(1, manifest.rows)))
        for_workers = pickle.loads(pickle.dumps(manifest.for_workers()))  # noqa: S301
        rows: list[dict[str, Any]] = []
        for shard in pickle.loads(pickle.dumps(cut)):  # noqa: S301
            inner = range(shard.start + 1, shard.stop)
            cuts = sorted(chance.sample(inner, chance.randint(0, min(4, len(inner)))))
            ranges = list(zip([shard.start, *cuts], [*cuts, shard.stop], strict=True))
            tables = list(read(storage, for_workers, shard, ranges))
            assert [(t["row"][0].as_py(), t.num_rows) for t in tables] == [(a, b - a) for a, b in ranges]
            for table in tables:
                assert table.schema.equals(row_schema(manifest))
                table.validate(full=True)
                rows += table.to_pylist()
        return rows

    return rows_of
