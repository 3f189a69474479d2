"""Films: frames of an episode, side by side in one picture, of which the page shows one after the other.

    {"kind": "film", "title", "note", "panels": [{"title", "strips": [{"name", "frames": array (t, height, width, 3)}
     ]}]}

Strips of a panel run together: a shorter one waits at its last frame. The picture is a PNG that is written here, so the
page needs no library for images, and it moves by its style sheet alone; where motion is not wanted it stands still.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec

__all__ = ["Strip", "draw_film", "film_frames", "png"]


@dataclass(frozen=True)
class Strip:
    """One film of a panel: a picture of all frames in a row."""

    name: str
    source: str  # a data URI
    frames: int
    shape: tuple[int, int]  # height and width of a frame


@dataclass(frozen=True)
class FilmPanel(Panel):
    strips: tuple[Strip, ...] = ()


def draw_film(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    del seed
    panels = []
    for part in spec["panels"]:
        films = {str(strip["name"]): film_frames(strip, arrays) for strip in part["strips"]}
        longest = max(map(len, films.values()))
        strips = tuple(_strip(name, _waiting(frames, longest)) for name, frames in films.items())
        alt = f"Film of {longest} frames: {' beside '.join(films)}."
        panels.append(FilmPanel(str(part.get("title", "")), alt, go.Figure(), strips))
    return Drawing("film", str(spec.get("title", "")), str(spec.get("note", "")), tuple(panels))


def film_frames(strip: Spec, arrays: Arrays) -> np.ndarray:
    name = str(strip["frames"])
    if name not in arrays:
        raise InputError(f"there is no array '{name}'. {did_you_mean(name, arrays)}")
    frames = np.asarray(arrays[name])
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8 or not frames.size:
        raise InputError(
            f"array '{name}' must be frames (t, height, width, 3) in bytes, but is {frames.shape} {frames.dtype}."
        )
    return frames


def _waiting(frames: np.ndarray, count: int) -> np.ndarray:
    return frames[np.minimum(np.arange(count), len(frames) - 1)]


def _strip(name: str, frames: np.ndarray) -> Strip:
    count, height, width, _ = frames.shape
    source = base64.b64encode(png(np.concatenate(list(frames), axis=1))).decode()
    return Strip(name, f"data:image/png;base64,{source}", count, (height, width))


def png(picture: np.ndarray) -> bytes:
    """A picture (height, width, 3) in bytes, as a PNG file: a header, the rows as they are, deflated, and an end."""
    height, width, _ = picture.shape
    rows = np.pad(picture.reshape(height, -1), ((0, 0), (1, 0)))  # each begins with its filter: 0, none
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
