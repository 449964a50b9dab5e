"""Where parcels lie on their way: a folder in memory that outlives its process by little, however that ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

from pipeline.engine.handover import MEMORY

_PREFIX = "framescribe-parcels-"
_NEW_SECONDS = 60.0


class ParcelFolder:
    """A new folder for parcels, in memory where the system has that.

    It goes with this object and with its process; `render_processes` sees to it where that is killed, and the
    next one that is made on the node where both were. While its process lives it is locked.
    """

    def __init__(self) -> None:
        base = MEMORY if os.path.isdir(MEMORY) else tempfile.gettempdir()
        _remove_abandoned(Path(base))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        held = os.open(self.path, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.remove = weakref.finalize(self, _remove, self.path, held)


def _remove(path: Path, held: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(held)


def _remove_abandoned(base: Path) -> None:
    for path in base.glob(f"{_PREFIX}*"):
        try:
            opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # another user's, or gone
            continue
        try:
            # One that is new may not be locked yet.
            if time.time() - os.fstat(opened).st_mtime > _NEW_SECONDS:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(opened)
