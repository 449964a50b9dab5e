"""The body of an HTTP answer, bounded whatever its headers say."""

from __future__ import annotations

import zlib

import aiohttp

from pipeline.errors import Code, ItemError
from pipeline.storage.info import TooLargeError
from pipeline.storage.uris import redact

_CHUNK = 2**18
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


async def read_body(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """All bytes of the body, unpacked if the server packed it unasked.

    Raises:
        TooLargeError: more than `max_bytes`; at once where the length is told, and never much later.
        ItemError: packed in a way that was not offered, or wrongly.
        aiohttp.ClientPayloadError, ConnectionError: it broke off.
    """
    packing = answer.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if packing not in ("identity", "gzip", "x-gzip", "deflate"):
        reason = f"{redact(str(answer.url))}: the body is packed as {packing[:20]}, which was not asked for"
        raise ItemError(Code.FETCH_FAILED, reason)
    if packing == "identity":
        if (answer.content_length or 0) > max_bytes:
            raise TooLargeError
        unpack = None
    else:
        unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
    parts: list[bytes] = []
    free = max_bytes
    async for chunk in answer.content.iter_chunked(_CHUNK):
        part = chunk if unpack is None else _unpacked(unpack, chunk, free + 1, answer)
        free -= len(part)
        if free < 0:
            raise TooLargeError
        parts.append(part)
        if unpack is not None and unpack.eof:
            break
    if unpack is not None and not unpack.eof:
        raise ConnectionError("the packed body has no end")
    return b"".join(parts)


def _unpacked(unpack: zlib._Decompress, chunk: bytes, most: int, answer: aiohttp.ClientResponse) -> bytes:
    try:
        return unpack.decompress(chunk, most)
    except zlib.error as error:
        reason = f"{redact(str(answer.url))}: the packed body is damaged"
        raise ItemError(Code.FETCH_FAILED, reason) from error
