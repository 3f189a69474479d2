"""Films and sample images, as PNG files inside the page.

A film is one wide picture of all frames, which the page's style sheet moves; it stands still for readers who prefer
reduced motion. Sample images are cells of a table, whose rows are views and whose columns are states.
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Film, ImagePanel, Images
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, named_array

__all__ = ["draw_film", "draw_images", "frames_of", "image_rows"]

COARSE = 96  # pixels: images up to this width are enlarged, with every pixel as a square


@dataclass(frozen=True)
class StripPicture:
    """One film: a picture of all frames side by side."""

    name: str
    source: str  # a data URI
    frames: int
    shape: tuple[int, int]  # height and width of a frame


@dataclass(frozen=True)
class DrawnFilmPanel(Panel):
    strips: tuple[StripPicture, ...] = ()


@dataclass(frozen=True)
class ImageCell:
    """One image: a data URI, and the text for readers who cannot see it."""

    source: str
    alt: str


@dataclass(frozen=True)
class DrawnImagesPanel(Panel):
    captions: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[ImageCell, ...]], ...] = ()
    coarse: bool = True


def draw_film(spec: Film, arrays: Arrays, seed: int) -> Drawing:
    """Strips side by side; shorter ones repeat their last frame until the longest ends."""
    del seed
    panels = []
    for part in spec.panels:
        films = {str(strip.name): frames_of(strip.frames, arrays) for strip in part.strips}
        longest = max(len(frames) for frames in films.values())
        strips = []
        for name, frames in films.items():
            times = np.minimum(np.arange(longest), len(frames) - 1)
            wide = np.concatenate(list(frames[times]), axis=1)
            strips.append(StripPicture(name, _data_uri(wide), longest, frames.shape[1:3]))
        alt = f"Film of {longest} frames: {' beside '.join(films)}."
        panels.append(DrawnFilmPanel(str(part.title), alt, go.Figure(), tuple(strips)))
    return Drawing("film", spec.title, spec.note or "", tuple(panels))


def draw_images(spec: Images, arrays: Arrays, seed: int) -> Drawing:
    del seed
    panels = []
    for part in spec.panels:
        rows = image_rows(part, arrays)
        captions = tuple(str(caption) for caption in part.captions)
        cells = tuple((name, _cells(name, images, captions)) for name, images in rows)
        alt = f"Images of {len(captions)} states, one row each: {', '.join(name for name, _ in rows)}."
        coarse = max(images.shape[2] for _, images in rows) <= COARSE
        panels.append(DrawnImagesPanel(str(part.title), alt, go.Figure(), captions, cells, coarse))
    return Drawing("images", spec.title, spec.note or "", tuple(panels), wide=True)


def frames_of(name: str, arrays: Arrays) -> np.ndarray:
    """An array of images (t, height, width, 3) in bytes."""
    frames = named_array(name, arrays)
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8 or not frames.size:
        raise InputError(
            f"array '{name}' must be frames (t, height, width, 3) of type uint8, but is {frames.shape} {frames.dtype}."
        )
    return frames


def image_rows(part: ImagePanel, arrays: Arrays) -> list[tuple[str, np.ndarray]]:
    """Name and images of each row; their number must be that of the captions, their size may differ between rows."""
    rows = [(str(row.name), frames_of(row.images, arrays)) for row in part.rows]
    if not rows:
        raise InputError("'rows' is empty: there is no image to show.")
    for name, images in rows:
        if len(images) != len(part.captions):
            raise InputError(f"row '{name}' has {len(images)} images for {len(part.captions)} captions.")
    return rows


def _cells(name: str, images: np.ndarray, captions: tuple[str, ...]) -> tuple[ImageCell, ...]:
    pairs = zip(images, captions, strict=True)
    return tuple(ImageCell(_data_uri(image), f"{name}: {caption}") for image, caption in pairs)


def _data_uri(picture: np.ndarray) -> str:
    return f"data:image/png;base64,{base64.b64encode(_png(picture)).decode()}"


def _png(picture: np.ndarray) -> bytes:
    """A picture (height, width, 3) in bytes as a PNG file; written here so that no imaging library is needed."""
    height, width, _ = picture.shape
    rows = np.pad(picture.reshape(height, -1), ((0, 0), (1, 0)))  # each row begins with its filter type, 0 for none
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = [_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
