"""Caption a dataset: `python jobs/caption_dataset.py --config conf/caption_s3.yaml output.uri=…`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pipeline.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
