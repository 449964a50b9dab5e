"""What an engine's actor spends on a batch before its pixels are on their way to a render worker.

    python -m benchmarks.open_batch --rows 32 --rounds 20

A batch of 1024 x 768 pictures as Ray hands it over: opened as the pipeline does, which refers to its memory,
and by what Arrow and Pillow offer for it (`combine_chunks`, scalars, `Image.fromarray` and back). Both hold the
interpreter's lock, in the thread that feeds the engine. Medians over the rounds, by the clock.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from PIL import Image

from pipeline.models.packing import LoadedMedia
from pipeline.models.picture import PixelPicture
from pipeline.stages.batch import Batch, pack_media, prepared_schema, unpack_media


def main() -> None:
    """Make the batch, open it both ways in turn, print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    memory = made(arguments.rows)
    took: dict[Callable[[pa.Table], object], list[float]] = {referred_to: [], copied: []}
    for _ in range(arguments.rounds):
        for way, seconds in took.items():
            row = pa.ipc.open_stream(memory).read_all()
            began = time.perf_counter()
            way(row)
            seconds.append(time.perf_counter() - began)
    for way, seconds in took.items():
        print(f"{way.__name__:<12} {1000 * statistics.median(seconds) / arguments.rows:7.3f} ms an image")


def made(rows: int) -> pa.Buffer:
    """A batch of so many pictures, as its bytes travel."""
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 255, (768, 1024, 3), np.uint8) for _ in range(rows)]
    media = [[pack_media(LoadedMedia("image", str(n), one))] for n, one in enumerate(pictures)]
    column = pa.array(media, prepared_schema(pa.struct([])).field("media").type)
    row = Batch("shard", 0, rows, pa.table({"media": column}), {}).to_row()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    return sink.getvalue()


def referred_to(row: pa.Table) -> list[PixelPicture]:
    """As the pipeline does; what is pickled for a render worker are the pixels as they lie there."""
    return [PixelPicture(one.pixels) for (one,) in unpack_media(Batch.from_row(row).items["media"])]


def copied(row: pa.Table) -> list[np.ndarray]:
    """Pixels from Arrow's scalars, made a picture, and taken from it to be pickled."""
    items = pa.Table.from_struct_array(row["items"].combine_chunks().flatten())
    pixels = []
    for (value,) in items["media"].combine_chunks():
        flat = np.frombuffer(value["pixels"].as_buffer(), np.uint8)
        pixels.append(np.asarray(Image.fromarray(flat.reshape(value["shape"].as_py()))))
    return pixels


if __name__ == "__main__":
    main()
