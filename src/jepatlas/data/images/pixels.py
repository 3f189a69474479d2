"""One image file as bytes: whatever its size and mode, or a clear word about what is wrong with it.

Palettes, CMYK and 16-bit grey become 8-bit grey or colour; what is transparent is laid on black, for the colours that
a transparent pixel hides are nobody's. Sixteen bits are scaled by their full range, so that images keep their order.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["Fit", "Mode", "read_pixels", "resized"]

Mode = Literal["grey", "rgb"]
Fit = Literal["stretch", "cover"]
"""How an image comes to a size: all of it, stretched; or the largest part in its middle of the right proportions."""


ORIENTATION = 0x0112
TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""What brings an image of each EXIF orientation upright, as pillow numbers it (`Image.Transpose`)."""


def read_pixels(
    path: Path, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
) -> np.ndarray:
    """Bytes (height, width, 3), or (height, width) in grey; `size` is (width, height)."""
    library: Any = require("PIL.Image", "vision", "Reading images")
    broken = (OSError, SyntaxError, ValueError, EOFError, KeyError, struct.error, library.DecompressionBombError)
    try:
        with library.open(path) as file:
            if size is not None:  # JPEG can be decoded at a half, a quarter or an eighth: no less than twice the size
                file.draft(None, (2 * size[0], 2 * size[1]))
            return resized(library, _upright(_eight_bits(library, file), file), mode, size, fit)
    except FileNotFoundError as error:
        raise InputError(f"There is no image {path}.") from error
    except broken as error:  # what pillow's plugins raise for files that are cut or are something else
        empty = path.is_file() and path.stat().st_size == 0
        raise InputError(f"{path} could not be read as an image: {'it is empty' if empty else error}") from error


def resized(library: Any, image: Any, mode: Mode, size: tuple[int, int] | None, fit: Fit) -> np.ndarray:
    """A pillow image of 8 bits as bytes of one mode and size."""
    image = image.convert("L" if mode == "grey" else "RGB")
    if size is None or image.size == size:
        return np.asarray(image)
    box = (0, 0, *image.size) if fit == "stretch" else _middle(image.size, size)
    return np.asarray(image.resize(size, library.Resampling.BICUBIC, box=box))


def _middle(given: tuple[int, int], wanted: tuple[int, int]) -> tuple[float, float, float, float]:
    scale = min(given[0] / wanted[0], given[1] / wanted[1])
    width, height = scale * wanted[0], scale * wanted[1]
    left, top = (given[0] - width) / 2, (given[1] - height) / 2
    return left, top, left + width, top + height


def _upright(image: Any, file: Any) -> Any:
    """Turned as its EXIF tag says: cameras store what they saw, and how they were held."""
    turn = TURNS.get(file.getexif().get(ORIENTATION))
    return image if turn is None else image.transpose(turn)


def _eight_bits(library: Any, image: Any) -> Any:
    """An image of mode L, RGB or CMYK."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return library.fromarray(np.round(np.asarray(image) / 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError(
            f"its pixels are 32-bit numbers (mode {image.mode}), whose range is unknown; save 8 or 16 bits"
        )
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        seen = image.convert("RGBA")
        return library.alpha_composite(library.new("RGBA", seen.size, (0, 0, 0, 255)), seen)
    return image
