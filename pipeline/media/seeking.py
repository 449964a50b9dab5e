"""Decoding chosen frames of a video and little else: from the keyframe before each, forward to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from av.error import FFmpegError

from pipeline.media.timeline import Timeline, packets

# How many keyframes earlier decoding begins, as long as there are frames that did not come out whole. Some
# streams (gradual refresh) need until the next keyframe for that; others call a frame a key that is none.
_EARLIER = (0, 1, 4)


def decode_wanted(
    opened: Callable[[], AbstractContextManager[tuple[Any, Any]]],
    timeline: Timeline,
    wanted: list[int],
    picture: Callable[[Any], Any],
) -> dict[int, Any]:
    """Decode the frames stamped `wanted` (ascending), and return the pictures of those that are whole.

    Each frame is turned into `picture(frame)` as it comes. A stamp whose own frame does not come gets the one
    before it, which is then still on screen, unless the decoder complained on the way: then something is lost.
    `opened()` gives a fresh (container, stream). Raises MemoryError, FFmpegError where the decoder refuses the
    stream as a whole, and what `picture` raises.
    """
    taker = _Taker(picture)
    for earlier in _EARLIER:
        taker.want([stamp for stamp in wanted if stamp not in taker.pictures])
        if taker.wanted is None:
            break
        with opened() as (container, stream):
            _decode(container, stream, timeline, earlier, taker)
        if len(timeline.keys) == 1:  # it was decoded from its start already
            break
    return taker.pictures


def _decode(container: Any, stream: Any, timeline: Timeline, earlier: int, taker: _Taker) -> None:
    context = stream.codec_context
    context.open(strict=False)  # PyAV 19 tells this from a damaged packet only the first time
    count = iter(range(2**62))
    skipping = False
    for index, packet in enumerate(packets(container, stream)):
        if taker.wanted is None:
            return
        if index < timeline.start_for(taker.wanted, earlier):
            skipping = True
            continue
        if skipping:
            skipping = False
            context.flush_buffers()
            taker.jump()
        for frame in _frames(context, packet, taker):
            taker.see(frame, next(count) if timeline.counted else frame.pts)
    for frame in _frames(context, None, taker):
        taker.see(frame, next(count) if timeline.counted else frame.pts)
    taker.end()


def _frames(context: Any, packet: Any, taker: _Taker) -> Iterator[Any]:
    try:
        yield from context.decode(packet)
    except MemoryError:
        raise
    except FFmpegError:
        taker.complained = True


class _Taker:
    """Sees frames as they come from the decoder, in the order of display, and takes those wanted, if whole."""

    def __init__(self, picture: Callable[[Any], Any]) -> None:
        self.pictures: dict[int, Any] = {}
        self.complained = False
        self._picture = picture
        self._before: Any = None
        self._queue: list[int] = []

    @property
    def wanted(self) -> int | None:
        """The stamp that is wanted next; None when all have had their turn."""
        return self._queue[-1] if self._queue else None

    def want(self, stamps: list[int]) -> None:
        """Begin anew with other stamps, ascending."""
        self._queue = stamps[::-1]
        self.jump()

    def jump(self) -> None:
        """The next frame does not follow on the last one."""
        self._before, self.complained = None, False

    def see(self, frame: Any, stamp: int | None) -> None:
        """Look at one frame: what is wanted before it will not come any more."""
        if stamp is None:
            return
        while self._queue and self._queue[-1] < stamp:
            self._take(self._before, exact=False)
        if self._queue and self._queue[-1] == stamp:
            self._take(frame, exact=True)
        self._before = frame

    def end(self) -> None:
        """No more frames will come: the last one stays on screen."""
        while self._queue:
            self._take(self._before, exact=False)

    def _take(self, frame: Any, *, exact: bool) -> None:
        stamp = self._queue.pop()
        if frame is not None and not frame.is_corrupt and (exact or not self.complained):
            self.pictures[stamp] = self._picture(frame)
