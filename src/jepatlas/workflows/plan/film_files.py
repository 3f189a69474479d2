"""Films as files: GIF, or MP4 where its encoder is installed; episodes side by side, their goals shining through.

There may be several rows of them, what was driven and below it what was imagined; each has its name above and a frame
of its own colour.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import write_bytes
from jepatlas.worlds import ActionWorld

__all__ = ["check_film", "write_film"]

ZOOM = 3  # pixels of the film for one of the world
PER_SECOND = 10  # frames
REST = 9  # frames that the last one is held for
SHINE = 0.3  # how much of the goal is seen
BAND = 14  # pixels of the film above each row, for its name
FRAMES = ((0, 0, 0), (214, 120, 0), (0, 110, 170))  # colours of the rows, one after the other


def write_film(path: Path, rows: Mapping[str, Sequence[np.ndarray]], goals: Sequence[np.ndarray]) -> None:
    """Rows of episodes (t, height, width, 3) by name, and a picture of each goal; shorter ones wait at their end."""
    check_film(path)
    longest = max(len(film) for films in rows.values() for film in films)
    drawn = [_row(name, films, goals, longest, FRAMES[i % len(FRAMES)]) for i, (name, films) in enumerate(rows.items())]
    write_bytes(path, _WRITERS[path.suffix.lower()](np.concatenate(drawn, axis=1)))


def check_film(path: Path, world: ActionWorld | None = None) -> None:
    """Refuse what would be no film, of a world without pictures for example; before anything is driven for it."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"A film is written as .gif or .mp4, but {path} ends in neither.")
    require("PIL.Image", "vision", "Drawing a film")
    if path.suffix.lower() == ".mp4":
        require("imageio_ffmpeg", "vision", "Writing an MP4")
    if world is not None and world.observe(world.states(1, np.random.default_rng(0))).ndim != 4:
        raise InputError(f"'{world.kind}' is not seen as pictures, so there is no film of it. Leave out --film.")


def _row(
    name: str, films: Sequence[np.ndarray], goals: Sequence[np.ndarray], longest: int, colour: tuple[int, int, int]
) -> np.ndarray:
    """Episodes side by side, each in a frame, below the name of the row."""
    shining = [_waiting(_shining(film, goal), longest + REST) for film, goal in zip(films, goals, strict=True)]
    pictures = np.concatenate([_framed(film, colour) for film in shining], axis=2).repeat(ZOOM, 1).repeat(ZOOM, 2)
    band = np.broadcast_to(_band(name, pictures.shape[2], colour), (len(pictures), BAND, pictures.shape[2], 3))
    return np.concatenate([band, pictures], axis=1)


def _framed(film: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    framed = np.empty((len(film), film.shape[1] + 2, film.shape[2] + 2, 3), np.uint8)
    framed[:] = colour
    framed[:, 1:-1, 1:-1] = film
    return framed


def _band(name: str, width: int, colour: tuple[int, int, int]) -> np.ndarray:
    library: Any = require("PIL.Image", "vision", "Drawing a film")
    drawing: Any = require("PIL.ImageDraw", "vision", "Drawing a film")
    picture = library.new("RGB", (width, BAND), colour)
    drawing.Draw(picture).text((3, 1), name, fill=(255, 255, 255))
    return np.asarray(picture)


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
