"""Makes the files of tests/media/corpus and the table of what is to come of them.

    python -m tests.media.make_corpus

Needs ffmpeg (5.1 or later, with zimg), ImageMagick 6, cjpeg of libjpeg-turbo and colour profiles: on Debian
`apt-get install ffmpeg imagemagick libjpeg-turbo-progs icc-profiles-free`.
The tests need none of these: they read what is committed.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

from tests.media.making.broken import broken
from tests.media.making.expected import expectation
from tests.media.making.moving import moving
from tests.media.making.stills import stills

FOLDER = Path(__file__).parent / "corpus"
TABLE = FOLDER.with_suffix(".json")


def main() -> None:
    """Write everything anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    rows = []
    for case in itertools.chain(stills(), moving(), broken()):
        path = FOLDER / case.name
        assert not path.exists(), f"two files are named {case.name}"
        path.write_bytes(case.data)
        rows.append(expectation(case))
    TABLE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(rows)} files, {size:,} bytes")


if __name__ == "__main__":
    main()
