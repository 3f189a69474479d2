"""Films on the page: every frame is in the picture, and strips of a panel run together."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.reporting import draw
from jepatlas.reporting.film import png

FRAMES = np.random.default_rng(0).integers(0, 256, (5, 6, 8, 3), dtype=np.uint8)
ARRAYS = {"seen": FRAMES, "goal": FRAMES[:1], "grey": FRAMES[..., 0], "numbers": FRAMES.astype(float)}


def film(*names: str) -> dict[str, Any]:
    strips = [{"name": name, "frames": name} for name in names]
    return {"kind": "film", "title": "T", "panels": [{"title": "one", "strips": strips}]}


def picture(source: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))) as image:
        return np.asarray(image)


def test_a_png_is_the_picture():
    with Image.open(io.BytesIO(png(FRAMES[0]))) as image:
        assert image.mode == "RGB" and np.array_equal(np.asarray(image), FRAMES[0])


def test_the_picture_holds_all_frames_and_a_shorter_strip_waits():
    panel: Any = draw(film("seen", "goal"), ARRAYS).panels[0]
    seen, goal = panel.strips
    assert (seen.frames, seen.shape, goal.frames) == (5, (6, 8), 5)
    assert np.array_equal(picture(seen.source), np.concatenate(list(FRAMES), axis=1))
    assert np.array_equal(picture(goal.source), np.concatenate([FRAMES[0]] * 5, axis=1))


def test_what_a_film_shows_is_said():
    drawing = draw(film("seen", "goal"), ARRAYS)
    assert drawing.panels[0].alt == "Film of 5 frames: seen beside goal."


@pytest.mark.parametrize(
    ("name", "message"),
    [("sen", "Did you mean 'seen'"), ("grey", r"\(5, 6, 8\) uint8"), ("numbers", "in bytes")],
)
def test_what_is_no_film_is_refused(name: str, message: str):
    with pytest.raises(InputError, match=message):
        draw(film(name), ARRAYS)
