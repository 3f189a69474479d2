"""Frames of video files by PyAV: when each frame is shown, and frames in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["SUFFIXES", "VideoReader", "frame_times", "video_files"]

SUFFIXES = (".avi", ".gif", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm", ".wmv")


def video_files(folder: Path) -> list[Path]:
    """All video files in a folder and its subfolders, sorted by name; a file is a list of itself."""
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def frame_times(path: Path) -> np.ndarray:
    """Seconds at which each frame is shown (frames,). Packets are read, but nothing is decoded."""
    with _opened(path) as container:
        stream = _stream(container, path)
        times = [packet.pts for packet in container.demux(stream) if packet.size and packet.pts is not None]
        base = float(stream.time_base or 1)
    if not times:
        raise InputError(f"{path} has no frames with a time stamp.")
    return np.sort(np.array(times)) * base


@dataclass
class VideoReader:
    """Frames of one video after another; fastest if frame numbers increase."""

    path: Path | None = None
    position: int = 0
    frames: Iterator[np.ndarray] | None = None

    def read(self, path: Path, numbers: np.ndarray) -> np.ndarray:
        """The frames of these numbers, which increase: (b,) → (b, height, width, 3) in uint8."""
        found = []
        for number in np.unique(numbers).tolist():
            if path != self.path or self.frames is None or number < self.position:
                self.path, self.position, self.frames = path, 0, _frames(path)
            image = None
            while self.position <= number:
                image = next(self.frames, None)
                self.position += 1
                if image is None:
                    raise InputError(f"{path} ends before its frame {number}: it is damaged or was cut short.")
            found.append(image)
        return np.stack(found)[np.searchsorted(np.unique(numbers), numbers)]


def _frames(path: Path) -> Iterator[np.ndarray]:
    library = require("av", "interop", "Reading videos")
    try:
        with _opened(path) as container:
            for frame in container.decode(_stream(container, path)):
                yield frame.to_ndarray(format="rgb24")
    except library.error.FFmpegError as error:
        raise InputError(f"{path} cannot be decoded: {error}") from error


def _opened(path: Path) -> Any:
    library = require("av", "interop", "Reading videos")
    if not path.is_file():
        raise InputError(f"There is no video {path}.")
    try:
        return library.open(str(path))
    except (library.error.FFmpegError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a video: {error}") from error


def _stream(container: Any, path: Path) -> Any:
    if not container.streams.video:
        raise InputError(f"{path} has no images, only {', '.join(one.type for one in container.streams) or 'nothing'}.")
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    return stream
