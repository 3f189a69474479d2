"""Frames and clips of videos and episodes, with pairs at a stride.

    h = f(frame t),  h_next = f(frame t + stride)

A clip starts at frame t. Each item is encoded once, though most of them are part of two pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jepatlas.core.errors import InputError, MissingExtra
from jepatlas.core.sealing import sha256_of_json
from jepatlas.data import Episodes, channels_last
from jepatlas.data.videos import VideoReader, frame_times
from jepatlas.workflows.encode.source import Source, SourceOptions

__all__ = ["episode_source", "video_source"]

PIXELS = "pixels"


def video_source(folder: Path, videos: list[Path], options: SourceOptions, reads: str, frames: int) -> Source:
    """Items of all videos that can be read. Groups are the names of the videos, relative to the folder."""
    step, span = _step_and_span(options, reads, frames, folder)
    kept: list[Path] = []
    starts: list[np.ndarray] = []
    times: list[np.ndarray] = []
    notes: list[str] = []
    for video in videos:
        try:
            shown = frame_times(video)
        except MissingExtra:
            raise  # no video could be read
        except InputError as error:
            notes.append(f"Left out: {error}")
            continue
        first = np.arange(0, len(shown) - span + 1, step)
        if len(first) < 2:
            notes.append(f"Left out: {video} has {len(shown)} frames, but a pair needs {span + step}.")
            continue
        kept.append(video)
        starts.append(first)
        times.append(shown[first])
    if not kept:
        raise InputError(f"{folder} has no video that can be encoded. {' '.join(notes)}".rstrip())
    owner = np.repeat(np.arange(len(kept)), [len(first) for first in starts])
    clips = _Clips(kept, owner, np.concatenate(starts), span)
    groups = np.array([video.relative_to(folder).as_posix() for video in kept])[owner]
    columns = {"ids": _ids(groups, clips.start), "groups": groups, "times": np.concatenate(times)}

    def read(first: int, end: int) -> list[np.ndarray]:
        items = [clips.read(item) for item in range(first, end)]
        return items if reads == "clips" else [clip[0] for clip in items]

    listing = [[str(video.resolve()), video.stat().st_size, video.stat().st_mtime_ns] for video in kept]
    fingerprint = sha256_of_json([listing, step, span])
    what = "clips" if reads == "clips" else "frames"
    return Source(what, len(owner), read, columns, fingerprint, _successors(owner), tuple(notes))


@dataclass
class _Clips:
    """Clips of videos in order. Frames are kept until no later clip needs them."""

    videos: list[Path]
    owner: np.ndarray  # (items,): number of the video
    start: np.ndarray  # (items,): first frame
    span: int
    reader: VideoReader = field(default_factory=VideoReader)
    known: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def read(self, item: int) -> np.ndarray:
        """(span, height, width, 3) in uint8"""
        video, begin = int(self.owner[item]), int(self.start[item])
        numbers = range(begin, begin + self.span)
        self.known = {key: image for key, image in self.known.items() if key[0] == video and key[1] >= begin}
        missing = [number for number in numbers if (video, number) not in self.known]
        if missing:
            found = self.reader.read(self.videos[video], np.array(missing))
            self.known.update({(video, number): image for number, image in zip(missing, found, strict=True)})
        return np.stack([self.known[video, number] for number in numbers])


def _ids(groups: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return np.array([f"{group}#{number}" for group, number in zip(groups, numbers, strict=True)])


def _step_and_span(options: SourceOptions, reads: str, frames: int, place: Path) -> tuple[int, int]:
    """Frames between items, and frames of an item."""
    if reads == "texts":
        raise InputError(f"{place} holds images, but the model encodes texts.")
    if options.view is not None or options.most is not None:
        raise InputError("view and most are for images and texts, but the source has frames in order.")
    span = frames if reads == "clips" else 1
    return options.stride or span, span


def _successors(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Items followed by another one of the same video or episode, and those that follow."""
    first = np.flatnonzero(owner[:-1] == owner[1:])
    return first, first + 1


def episode_source(place: Path, episodes: Episodes, options: SourceOptions, reads: str, frames: int) -> Source:
    """Items of the column `pixels`, or of the first column of images, with the true states if they are known."""
    step, span = _step_and_span(options, reads, frames, place)
    images = [name for name, one in episodes.columns.items() if one.dtype == np.uint8 and len(one.shape) == 3]
    if not images:
        raise InputError(f"{place} has no column of images. Its columns are {', '.join(episodes.columns)}.")
    column = PIXELS if PIXELS in images else images[0]
    starts, owner = [], []
    for number, (length, offset) in enumerate(zip(episodes.lengths, episodes.offsets, strict=True)):
        first = np.arange(0, length - span + 1, step)
        starts.append(offset + first)
        owner.append(np.full(len(first), number))
    start, group = np.concatenate(starts), np.concatenate(owner)
    pairs = _successors(group)
    if not len(pairs[0]):
        raise InputError(f"No episode of {place} is longer than {span + step - 1} frames, so there are no pairs.")

    def read(first: int, end: int) -> list[np.ndarray]:
        rows = start[first:end, None] + np.arange(span)
        found = channels_last(episodes.rows(column, rows), episodes.columns[column].shape)
        return list(found if reads == "clips" else found[:, 0])

    first_rows = np.asarray(episodes.offsets)[group]
    steps = start - first_rows
    columns = {"ids": _ids(group, steps), "groups": group, "steps": steps}
    if "state" in episodes.columns:
        columns["z"] = episodes.rows("state", start)
    about = [str(place.resolve()), place.stat().st_mtime_ns, column, step, span, len(start)]
    what = "clips" if reads == "clips" else "frames"
    return Source(what, len(start), read, columns, sha256_of_json(about), pairs)
