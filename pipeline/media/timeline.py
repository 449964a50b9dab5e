"""When each frame of a video is shown, from its packets alone: nothing is decoded.

A packet holds one coded frame and says when that is shown. Listing the 54,000 packets of a half-hour clip
takes 0.4 s, less than decoding to one frame from a far keyframe, and it makes frame k the same frame in every
container: seeking inside FFmpeg lands where the container's index, or its lack of one, leads it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from av.error import EOFError as EndOfFile
from av.error import FFmpegError

# AVI numbers frames as they are coded. Where B-frames are plain FFmpeg finds out when each is shown; in these
# codecs it does not, nor where DivX packs two frames in one packet.
_COUNTED_IN_AVI = {"h264", "hevc", "av1", "vc1", "wmv3"}
_PACKED_DIVX = re.compile(rb"DivX\d{3,4}(b|Build)\d{3,4}p")
# How far a stream's own frame rate may be from what its frames' times say.
_RATE_TOLERANCE = 0.01
# Ticks a second of the clock of uneven frames: a millisecond is finer than any model tells.
_FINEST_CLOCK = 1000.0
# Places where reading goes on after an error: a hostile file may have one at each byte.
_MAX_READ_ERRORS = 100


@dataclass(frozen=True)
class Timeline:
    """The frames of one video stream, stamped in units of `time_base` (seconds).

    keys: (stamp, index of the packet) of each frame at which decoding can start, by stamp.
    keyframes: the stamps of the frames that are coded whole (`keys` knows them only where stamps are true).
    shown: the stamps of all frames that are shown, in the order of display. An edit list hides some.
    fps: frames per second, on average.
    counted: the container has no such stamps: the k-th frame out of the decoder is stamped k.
    """

    keys: list[tuple[int, int]]
    shown: list[int]
    time_base: Fraction
    fps: float
    counted: bool
    keyframes: list[int]

    def start_for(self, stamp: int, earlier: int = 0) -> int:
        """Return the packet to start at for the frame stamped so; `earlier`: so many keyframes before that."""
        at = bisect_right(self.keys, (stamp, 2**63)) - 1 - earlier
        return self.keys[max(0, at)][1]

    @cached_property
    def even(self) -> bool:
        """Whether frames come evenly: frame k less than half a frame from k / fps seconds."""
        return self._places(self.fps) == list(range(len(self.shown)))

    def clock(self) -> tuple[float, list[int]]:
        """Return a rate and each shown frame's place, so that place / rate is its time in seconds.

        Where frames come evenly that is `fps` and 0, 1, 2, … Where they do not, it is as if the file had a
        frame at each tick of its shortest gap, most of them repeated: what reckons with place / rate is
        right without knowing. Places ascend, no two alike.
        """
        if self.even:
            return self.fps, list(range(len(self.shown)))
        gap = min((later - stamp for stamp, later in pairwise(self.shown) if later > stamp), default=1)
        rate = min(_FINEST_CLOCK, float(1 / (gap * self.time_base)))
        places = self._places(rate)
        for at in range(1, len(places)):
            places[at] = max(places[at], places[at - 1] + 1)
        return rate, places

    def _places(self, rate: float) -> list[int]:
        ticks, units = (self.time_base * Fraction(rate)).limit_denominator(2**40).as_integer_ratio()
        first = self.shown[0]
        return [(2 * (stamp - first) * ticks + units) // (2 * units) for stamp in self.shown]

    def seconds(self, index: int) -> float:
        """Return when a shown frame appears, in seconds after the first."""
        return float((self.shown[index] - self.shown[0]) * self.time_base)

    def at_seconds(self, seconds: float) -> int:
        """Return which of the shown frames is to be seen so many seconds after the first."""
        stamp = self.shown[0] + Fraction(seconds + 1e-6) / self.time_base
        return max(0, bisect_right(self.shown, stamp) - 1)


def read_timeline(container: Any, stream: Any, head: bytes) -> Timeline | None:
    """List the packets of `stream` in an open PyAV container; None when it has no frame.

    `head` is the beginning of the file. What cannot be read any more, at a damaged place, is not listed.
    """
    stamps: list[int | None] = []
    starts: list[int] = []
    hidden: set[int] = set()
    ticks = 0
    for index, packet in enumerate(packets(container, stream)):
        stamps.append(packet.pts if packet.pts is not None else packet.dts)
        if packet.is_keyframe:
            starts.append(index)
        if packet.is_discard:
            hidden.add(index)
        ticks = packet.duration or ticks
    if not stamps:
        return None
    # Before the first keyframe (a broadcast that was cut) nothing can be decoded.
    first = starts[0] if starts else 0
    stamped = [stamp for stamp in stamps[first:] if stamp is not None]
    rate = _rate(stream)
    if _is_counted(container, stream, head) or len(stamped) < len(stamps) - first:
        fps = rate or Fraction(25)
        return Timeline([(0, 0)], list(range(len(stamps))), 1 / fps, float(fps), True, starts)
    keys = sorted((stamp, index) for index in starts or [0] if (stamp := stamps[index]) is not None)
    shown = sorted(
        stamp
        for index, stamp in enumerate(stamps)
        if index >= first and index not in hidden and stamp is not None and stamp >= keys[0][0]
    )
    if not shown:
        return None
    time_base = Fraction(stream.time_base)
    per_second = _fps(shown, ticks, time_base, rate)
    return Timeline(keys, shown, time_base, per_second, False, [stamp for stamp, _ in keys])


def packets(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the packets of `stream`, going on after places that cannot be read."""
    for _ in range(_MAX_READ_ERRORS):
        try:
            for packet in container.demux(stream):
                if packet.size:
                    yield packet
            return
        except (EndOfFile, MemoryError):
            raise
        except (FFmpegError, IndexError):  # IndexError: PyAV, of a stream that began in the middle of the file
            continue


def _is_counted(container: Any, stream: Any, head: bytes) -> bool:
    if container.format.name != "avi":
        return False
    return stream.codec_context.name in _COUNTED_IN_AVI or _PACKED_DIVX.search(head) is not None


def _rate(stream: Any) -> Fraction | None:
    for rate in (stream.average_rate, stream.guessed_rate):
        if rate and rate > 0:  # an unknown one is None, in PyAV 19 it is 0/0, which is "more" than 0
            return Fraction(rate)
    return None


def _fps(shown: list[int], ticks: int, time_base: Fraction, rate: Fraction | None) -> float:
    """Return the stream's own rate where its frames keep to it, else frames by the time they take.

    `ticks` is how long the last frame is shown, 0 where that is not known.
    """
    between = shown[-1] - shown[0]
    if len(shown) == 1 or between == 0:
        return float(rate or 1 / (ticks * time_base or Fraction(1)))
    ticks = ticks or round(between / (len(shown) - 1))
    measured = len(shown) / ((between + ticks) * time_base)
    if rate is not None and abs(rate / measured - 1) < _RATE_TOLERANCE:
        return float(rate)
    return float(measured)
