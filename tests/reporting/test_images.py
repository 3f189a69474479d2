"""Sample images on the page and on paper: every one is there as it was given, in its place, and is named."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.core.pictures import LARGEST, as_pictures, shrunk, spread_rows
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


def samples(*names: str, captions: tuple[str, ...] = ("a", "b", "<c>")) -> dict[str, Any]:
    rows = [{"name": f"view {name}", "images": name} for name in names]
    return {"kind": "images", "title": "T", "panels": [{"title": "both", "captions": list(captions), "rows": rows}]}


def picture(source: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))) as image:
        return np.asarray(image)


def test_every_image_is_in_its_row_and_column():
    panel: Any = draw(samples("left", "right"), ARRAYS).panels[0]
    for name, (title, shown) in zip(("left", "right"), panel.rows, strict=True):
        assert title == f"view {name}"
        assert [one.alt for one in shown] == [f"view {name}: {caption}" for caption in ("a", "b", "<c>")]
        assert all(np.array_equal(picture(one.source), image) for one, image in zip(shown, ARRAYS[name], strict=True))
    assert panel.alt == "Images of 3 states, one row each: view left, view right." and panel.coarse
    large = draw(samples("large"), {"large": np.zeros((3, 100, 100, 3), np.uint8)}).panels[0]
    assert not large.coarse  # type: ignore[attr-defined]


def test_the_page_names_images_and_escapes_their_names(tmp_path):
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
        (samples("h"), "in bytes"),
    ],
)
def test_what_cannot_be_shown_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        draw(spec, ARRAYS)


def test_on_paper_images_stand_beside_samples_marked_by_name(tmp_path):
    scatter = {"kind": "scatter", "panels": [{"x": "h", "color": "label"}]}
    paper_figure([samples("left", "right"), scatter], ARRAYS, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        colours = {tuple(pixel) for pixel in np.asarray(sheet.convert("RGB")).reshape(-1, 3).tolist()}
    assert {tuple(pixel) for pixel in ARRAYS["left"][0].reshape(-1, 3).tolist()} <= colours


def test_raw_input_becomes_pictures_whatever_its_form():
    grey = RNG.uniform(0, 255, (2, 5, 7))
    expected = np.repeat(grey.round().astype(np.uint8)[..., None], 3, axis=3)
    for form in (grey, grey[..., None], grey[:, None], np.repeat(grey[:, None], 3, axis=1), (grey / 255)):
        np.testing.assert_array_equal(as_pictures(form), expected)
    centred = as_pictures(grey - 300)
    assert centred is not None and (centred.min(), centred.max()) == (0, 255)
    for other in (grey[:, 0], grey[:, :2], grey[:, :, :, None, None], np.full((2, 5, 5), np.nan), grey.astype(str)):
        assert as_pictures(other) is None


def test_large_images_are_brought_to_the_mean_of_their_squares():
    images = RNG.integers(0, 256, (2, 2 * LARGEST, 2 * LARGEST, 3), dtype=np.uint8)
    small = shrunk(images)
    assert small.shape == (2, LARGEST, LARGEST, 3)
    assert small[1, 3, 4, 2] == round(images[1, 6:8, 8:10, 2].mean())
    assert shrunk(small) is small


def test_rows_to_show_cover_the_labels():
    labels = np.array(["b", "a"] * 30 + ["c"] * 20)
    rows = spread_rows(len(labels), 5, labels)
    assert set(labels[rows]) == {"a", "b", "c"} and len(set(rows.tolist())) == 5
    np.testing.assert_array_equal(spread_rows(3, 8), [0, 1, 2])
