"""Films and sample images in reports and paper figures."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Film, FilmPanel, FilmStrip, ImagePanel, ImageRow, Images, Scatter, ScatterPanel
from jepatlas.core.records import Record
from jepatlas.reporting import draw, write_report
from jepatlas.reporting.paper import paper_figure

RNG = np.random.default_rng(0)
ARRAYS = {
    "left": RNG.integers(0, 256, (3, 6, 8, 3), dtype=np.uint8),
    "right": RNG.integers(0, 256, (3, 4, 4, 3), dtype=np.uint8),
    "label": np.array(["car", "mug", "car"]),
    "h": RNG.standard_normal((3, 2)),
}

FRAMES = RNG.integers(0, 256, (5, 6, 8, 3), dtype=np.uint8)
FILMS = {"observed": FRAMES, "goal": FRAMES[:1], "grey": FRAMES[..., 0], "numbers": FRAMES.astype(float)}


def samples(*names: str, captions: tuple[str, ...] = ("a", "b", "<c>")) -> Images:
    rows = [ImageRow(f"view {name}", name) for name in names]
    return Images(title="T", panels=[ImagePanel(captions, rows, "both")])


def picture(source: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))) as image:
        return np.asarray(image)


def test_images_are_in_their_row_and_column():
    panel: Any = draw(samples("left", "right"), ARRAYS).panels[0]
    for name, (title, shown) in zip(("left", "right"), panel.rows, strict=True):
        assert title == f"view {name}"
        assert [one.alt for one in shown] == [f"view {name}: {caption}" for caption in ("a", "b", "<c>")]
        assert all(np.array_equal(picture(one.source), image) for one, image in zip(shown, ARRAYS[name], strict=True))
    assert panel.alt == "Images of 3 states, one row each: view left, view right." and panel.coarse
    large = draw(samples("large"), {"large": np.zeros((3, 100, 100, 3), np.uint8)}).panels[0]
    assert not large.coarse  # type: ignore[attr-defined]


def test_page_labels_images_and_escapes_their_names(tmp_path):
    Record("Views", "Seen.", {}, figures=(samples("left", "right"),), arrays=ARRAYS).save(tmp_path, "views")
    page = write_report([tmp_path], tmp_path / "report.html", title="T").read_text()
    assert page.count('<td><img src="data:image/png;base64,') == 6 and 'alt="view right: &lt;c&gt;"' in page
    assert page.count('<th scope="row">view ') == 2 and "<td>&lt;c&gt;</td>" in page


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (samples("lft"), "Did you mean 'left'"),
        (samples("left", captions=("a",)), "3 images for 1 captions"),
        (samples(), "no image to show"),
        (samples("h"), "uint8"),
    ],
)
def test_invalid_images_are_rejected(spec, message):
    with pytest.raises(InputError, match=message):
        draw(spec, ARRAYS)


def test_paper_figure_combines_images_and_scatter(tmp_path):
    scatter = Scatter(panels=[ScatterPanel("h", color="label")])
    paper_figure([samples("left", "right"), scatter], ARRAYS, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        colours = {tuple(pixel) for pixel in np.asarray(sheet.convert("RGB")).reshape(-1, 3).tolist()}
    assert {tuple(pixel) for pixel in ARRAYS["left"][0].reshape(-1, 3).tolist()} <= colours


def film_of(*names: str) -> Film:
    return Film(title="T", panels=[FilmPanel([FilmStrip(name, name) for name in names], "one")])


def test_shorter_film_strips_repeat_their_last_frame():
    panel: Any = draw(film_of("observed", "goal"), FILMS).panels[0]
    observed, goal = panel.strips
    assert (observed.frames, observed.shape, goal.frames) == (5, (6, 8), 5)
    assert np.array_equal(picture(observed.source), np.concatenate(list(FRAMES), axis=1))
    assert np.array_equal(picture(goal.source), np.concatenate([FRAMES[0]] * 5, axis=1))


def test_film_has_an_alternative_text():
    drawing = draw(film_of("observed", "goal"), FILMS)
    assert drawing.panels[0].alt == "Film of 5 frames: observed beside goal."


@pytest.mark.parametrize(
    ("name", "message"),
    [("obsrved", "Did you mean 'observed'"), ("grey", r"\(5, 6, 8\) uint8"), ("numbers", "uint8")],
)
def test_invalid_films_are_rejected(name: str, message: str):
    with pytest.raises(InputError, match=message):
        draw(film_of(name), FILMS)
