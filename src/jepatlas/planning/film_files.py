"""Films as files: GIF, or MP4 where its encoder is installed; several episodes side by side, each with its goal shining
through.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.base.errors import InputError, require
from jepatlas.base.files import write_bytes

__all__ = ["check_film", "write_film"]

ZOOM = 3  # pixels of the film for one of the world
PER_SECOND = 10  # frames
REST = 9  # frames that the last one is held for
SHINE = 0.3  # how much of the goal is seen


def write_film(path: Path, episodes: Sequence[np.ndarray], goals: Sequence[np.ndarray]) -> None:
    """Episodes (t, height, width, 3), each with a picture of its goal; shorter ones wait at their last frame."""
    check_film(path)
    if not episodes:
        raise InputError("There are no pictures of this world, so there is no film of it.")
    longest = max(map(len, episodes))
    rows = [_waiting(_shining(film, goal), longest + REST) for film, goal in zip(episodes, goals, strict=True)]
    framed = [np.pad(row, ((0, 0), (1, 1), (1, 1), (0, 0))) for row in rows]
    film = np.concatenate(framed, axis=2).repeat(ZOOM, 1).repeat(ZOOM, 2)
    write_bytes(path, _WRITERS[path.suffix.lower()](film))


def check_film(path: Path) -> None:
    """Refuse a file that would be no film; before anything is driven for it."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"A film is written as .gif or .mp4, but {path} ends in neither.")


def _shining(film: np.ndarray, goal: np.ndarray) -> np.ndarray:
    return ((1 - SHINE) * film + SHINE * goal).astype(np.uint8)


def _waiting(film: np.ndarray, count: int) -> np.ndarray:
    return film[np.minimum(np.arange(count), len(film) - 1)]


def _gif(film: np.ndarray) -> bytes:
    library: Any = require("PIL.Image", "vision", "Writing a GIF")
    first, *others = (library.fromarray(frame) for frame in film)
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=1000 // PER_SECOND, loop=0)
    return buffer.getvalue()


def _mp4(film: np.ndarray) -> bytes:
    library: Any = require("imageio_ffmpeg", "vision", "Writing an MP4")
    height, width = (side - side % 2 for side in film.shape[1:3])  # the codec takes even sides
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "film.mp4"
        writer = library.write_frames(str(place), (width, height), fps=PER_SECOND, macro_block_size=2)
        writer.send(None)
        for frame in film[:, :height, :width]:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
        return place.read_bytes()


_WRITERS: dict[str, Callable[[np.ndarray], bytes]] = {".gif": _gif, ".mp4": _mp4}
