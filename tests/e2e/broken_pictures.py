"""A dataset of 300 pictures of which 20 are broken in five ways, with the code that each must get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from demo.make_dataset import make_dataset

GOOD = 280
PAGE = b"<!DOCTYPE html><html><head><title>404</title></head><body>Not here</body></html>"


@dataclass(frozen=True)
class Dataset:
    """`codes` maps the ids of broken rows to their error codes, `answers` all others to what is shown."""

    manifest: Path
    codes: dict[str, str]
    answers: dict[str, str]


def make_broken(folder: Path) -> Dataset:
    """300 rows, every 15th of them broken: missing, cut off, an HTML page, empty, another scheme."""
    source = make_dataset(folder, shapes=300, texts=0, videos=0, seed=11)
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    codes = {}
    for number, row in enumerate(rows[7::15]):
        path = folder / row["image"]
        match number % 5:
            case 0:
                path.unlink()
                codes[row["id"]] = "fetch_not_found"
            case 1:
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2])
                codes[row["id"]] = "decode_truncated"
            case 2:
                path.write_bytes(PAGE)
                codes[row["id"]] = "not_media"
            case 3:
                path.write_bytes(b"")
                codes[row["id"]] = "empty_file"
            case 4:
                row["image"] = "http://127.0.0.1/latest/meta-data"
                codes[row["id"]] = "scheme_not_allowed"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = {row["id"]: row["answer"] for row in rows if row["id"] not in codes}
    assert (len(codes), len(answers)) == (20, GOOD)
    return Dataset(source, codes, answers)
