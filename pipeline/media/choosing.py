"""Which frames of a file a sampling takes, whether they come evenly or not."""

from __future__ import annotations

import numpy as np

from pipeline.errors import Code, ItemError
from pipeline.media.sampling import FrameSampling, evenly, frame_indices
from pipeline.media.timeline import Timeline

# Timestamps of a damaged file may span years.
_MOST_TIMES = 100_000
# A clip ends before `end`: the frame that begins just then is not in it.
_BEFORE = 2e-6


def chosen_frames(timeline: Timeline, sampling: FrameSampling) -> list[int]:
    """Return which of the shown frames to take, ascending and each once.

    Of a clip (`start`, `end`) the first frame is what is on screen at its start; it stands in where the clip
    has no keyframe. Raises ItemError CLIP_OUTSIDE where the file ends before the clip starts.
    """
    first, stop = _clip(timeline, sampling)
    if sampling.keyframes:
        coded_whole = set(timeline.keyframes)
        found = [index for index in range(first, stop) if timeline.shown[index] in coded_whole] or [first]
        most = min(len(found), sampling.max_frames or len(found))
        return [found[at] for at in evenly(len(found), most)]
    if sampling.fps is None or timeline.even:
        return [first + index for index in frame_indices(stop - first, timeline.fps, sampling)]
    # Frames come unevenly: what is on screen every 1 / fps seconds, each frame once.
    begin = max(sampling.start, timeline.seconds(first))
    seconds = timeline.seconds(stop - 1) - begin
    count = int(max(0.0, seconds) * sampling.fps + 1e-6) + 1
    most = sampling.max_frames or _MOST_TIMES
    times = [k / sampling.fps for k in range(count)] if count <= most else np.linspace(0, seconds, most)
    return sorted({timeline.at_seconds(begin + float(time)) for time in times})


def _clip(timeline: Timeline, sampling: FrameSampling) -> tuple[int, int]:
    """Return the first of the shown frames in the clip, and the one after its last."""
    total = len(timeline.shown)
    if sampling.start == 0 and sampling.end is None:
        return 0, total
    length = timeline.seconds(total - 1) + 1 / timeline.fps
    if sampling.start >= length:
        raise ItemError(
            Code.CLIP_OUTSIDE,
            f"the video has {length:.2f} s, and the clip starts at {sampling.start:g} s (the row's "
            "manifest.columns.start, or media.video.start)",
        )
    first = timeline.at_seconds(sampling.start)
    if sampling.end is None:
        return first, total
    return first, max(first, timeline.at_seconds(sampling.end - _BEFORE)) + 1
