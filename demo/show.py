"""Prints where a run's results are and a few of their rows: `python -m demo.show OUTPUT`."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds


def show(output: Path, rows: int = 8) -> None:
    """Print the newest recipe's files, its first rows, and how many answers are exactly right."""
    recipe = max(output.glob("recipe=*"), key=lambda folder: folder.stat().st_mtime)
    table = ds.dataset(recipe, format="parquet").to_table(columns=["id", "status", "text", "answer"])
    right = sum(row["text"] == row["answer"] for row in table.to_pylist())
    print(f"\nresults: {recipe}/*.parquet ({table.num_rows} rows, {right} exactly right)")
    step = max(1, table.num_rows // rows)
    for row in table.take(list(range(0, table.num_rows, step))[:rows]).to_pylist():
        print(f"  {row['id']:<12} {row['status']:<6} {row['text']!r}")


if __name__ == "__main__":
    show(Path(sys.argv[1]))
