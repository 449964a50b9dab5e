"""Files wherever they are: read within bounds, list, and put whole or not at all; which URIs are allowed."""

from pipeline.storage.info import Fetched, FileInfo
from pipeline.storage.store import Storage
from pipeline.storage.uris import is_absolute, join, parent, redact, scheme_of

__all__ = ["Fetched", "FileInfo", "Storage", "is_absolute", "join", "parent", "redact", "scheme_of"]
