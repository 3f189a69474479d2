from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.figures import figure_from_json
from jepatlas.reporting import draw
from jepatlas.reporting.colours import ramp, wheel
from jepatlas.reporting.drawers import DRAWERS
from jepatlas.reporting.drawing import Drawing

Z = np.random.default_rng(0).standard_normal((5000, 3))
ARRAYS = {"z": Z, "h": 2 * Z, "energy": Z[:, 0] ** 2, "label": np.array(["a"] * 5000)}


def drawn(spec: dict[str, Any], arrays: Any = None, *, seed: int = 0) -> Drawing:
    """Draw a figure from its saved form."""
    return draw(figure_from_json(spec), arrays, seed=seed)


def traces(drawing: Drawing, panel: int = 0) -> Any:
    return drawing.panels[panel].figure.data


def scatter(**panel):
    return {"kind": "scatter", "title": "T", "panels": [{"x": "z", **panel}]}


def test_large_arrays_are_subsampled_with_the_seed_and_keep_their_index():
    first, again, other = (drawn(scatter(color="z"), ARRAYS, seed=seed) for seed in (0, 0, 1))
    trace = traces(first)[0]
    assert len(trace.x) == len(trace.marker.color) == 2000
    np.testing.assert_allclose(trace.x, Z[trace.customdata, 0], rtol=1e-6)
    assert first.panels[0].figure == again.panels[0].figure != other.panels[0].figure
    assert "2,000 of 5,000 samples" in first.note


def test_margins_of_plots_with_equal_axes_are_fixed():
    """With automatic margins, scale and ticks would depend on each other and plotly would not converge."""
    field = {"kind": "landscape", "title": "T", "panels": [{"values": "field", "x": [0, 1], "y": [0, 1]}]}
    for spec in (scatter(color="z"), field):
        layout = drawn(spec, {**ARRAYS, "field": np.ones((2, 2))}).panels[0].figure.layout
        assert layout.yaxis.scaleanchor == "x"
        assert layout.xaxis.automargin is False and layout.yaxis.automargin is False and layout.margin.l > 30


def test_panels_show_the_same_samples_in_the_same_colours():
    spec = {"kind": "scatter", "title": "T", "panels": [{"x": "z", "color": "z"}, {"x": "h", "color": "z"}]}
    drawing = drawn(spec, ARRAYS)
    one, two = traces(drawing)[0], traces(drawing, 1)[0]
    assert (one.customdata == two.customdata).all() and one.marker.color == two.marker.color
    assert len(drawing.keys) == 1 and drawing.keys[0].shape == "wheel"


def test_one_column_gives_a_ramp_and_no_column_uses_the_theme():
    assert drawn(scatter(color="energy"), ARRAYS).keys[0].shape == "ramp"
    assert drawn(scatter(color="z", color_columns=[2]), ARRAYS).keys[0].shape == "ramp"
    assert traces(drawn(scatter(), ARRAYS))[0].marker.color is None


def test_few_names_have_colours_and_shapes_and_many_have_a_ramp():
    drawing = drawn(
        scatter(color="kind", color_label="kind of toy"), ARRAYS | {"kind": np.array(["car", "mug"] * 2500)}
    )
    (key,) = drawing.keys
    marker = traces(drawing)[0].marker
    assert [one.name for one in key.names] == ["car", "mug"] and key.text == "Kind of toy:"
    assert {*zip(marker.color, marker.symbol, strict=True)} == {
        (key.names[0].colour, "circle"),
        (key.names[1].colour, "square"),
    }
    many = drawn(scatter(color="kind"), ARRAYS | {"kind": np.array([f"{i % 13:02d}" for i in range(5000)])})
    assert many.keys[0].shape == "ramp" and "13 of them" in many.keys[0].text


def test_opposite_directions_have_opposite_hues_and_the_centre_is_pale():
    circle = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [0, 0]])
    hls = [colorsys.rgb_to_hls(*(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5))) for c in wheel(circle)]
    gaps = [abs(hls[i][0] - hls[i + 2][0]) for i in (0, 1)]
    assert all(0.2 < gap < 0.8 for gap in gaps)
    assert hls[4][2] < min(h[2] for h in hls[:4])
    assert len(set(ramp(np.array([0.0, 1.0, 2.0])))) == 3
    assert len(wheel(np.zeros((4, 2)))) == 4 and len(set(ramp(np.ones(3)))) == 1


def test_curves_have_bands_legend_and_gaps():
    series = [
        {"name": "a", "x": [1, 2, 3], "y": [1, "nan", 3], "low": [0, "nan", 2], "high": [2, "nan", 4]},
        {"name": "<b>b</b>", "x": [1, 2], "y": ["-inf", 2]},
    ]
    drawing = drawn({"kind": "curves", "title": "C", "x_label": "<i>n</i>", "series": series})
    band, a, b = traces(drawing)
    assert drawing.legend == ("a", "<b>b</b>")
    assert [t.meta["part"] for t in (band, a, b)] == ["band", "line", "line"]
    np.testing.assert_array_equal(band.y, [0, 2, 4, 2])
    assert np.isnan(a.y[1]) and np.isnan(b.y[0])
    assert b.name == "&lt;b&gt;b&lt;/b&gt;"
    assert "a: 1 of 3 values" in drawing.note and "a from 1 to 3" in drawing.panels[0].alt


def test_logarithmic_axis_reports_values_that_are_not_positive():
    series = [{"name": "a", "x": [1, 2], "y": [0.0, 10], "low": [-1, 5], "high": [1, 20]}]
    drawing = drawn({"kind": "curves", "title": "C", "log_y": True, "series": series})
    assert drawing.panels[0].figure.layout.yaxis.type == "log"
    assert (traces(drawing)[0].y > 0).all()
    assert "a: 1 values are not positive" in drawing.note


def test_logarithmic_axis_with_few_points_is_labelled_at_the_points():
    few = {"kind": "curves", "log_x": True, "series": [{"name": "a", "x": [1, 5, 50], "y": [1, 2, 3], "dash": True}]}
    drawing = drawn(few)
    assert drawing.panels[0].figure.layout.xaxis.ticktext == ("1", "5", "50") and drawing.dashed == ("a",)
    many = [{"name": "a", "x": list(range(1, 30)), "y": [1] * 29}]
    assert drawn(few | {"series": many}).panels[0].figure.layout.xaxis.tickvals is None


def test_bars_have_error_bars_and_marks_for_published_values():
    series = [
        {"name": "ours", "y": [0.5, "nan"], "low": [0.4, "nan"], "high": [0.7, "nan"]},
        {"name": "<b>", "y": [1, 2]},
    ]
    spec = {"kind": "bars", "title": "B", "names": ["<i>a</i>", "b"], "series": series, "published": [0.9, "nan"]}
    ours, other, published = traces(drawing := drawn(spec))
    assert drawing.legend == ("ours", "<b>", "published") and "ours: 1 of 2 values" in drawing.note
    assert ours["error_y"]["array"][0] == pytest.approx(0.2) and ours["error_y"]["arrayminus"][0] == pytest.approx(0.1)
    assert other["error_y"]["array"] is None and other["name"] == "&lt;b&gt;" and ours["x"][0] == "&lt;i&gt;a&lt;/i&gt;"
    assert published["mode"] == "markers" and published["y"][0] == 0.9 and drawing.ink == ("published",)
    assert drawing.panels[0].figure.layout.xaxis.tickvals == ("&lt;i&gt;a&lt;/i&gt;", "b"), "no name is left out"
    assert not drawing.wide and drawn(spec | {"series": 7 * series}).wide
    with pytest.raises(InputError, match="same number of rows"):
        drawn(spec | {"names": ["a"]})


def test_heatmap_is_symmetric_around_zero_only_with_negative_values():
    signed = drawn({"kind": "heatmap", "title": "H", "matrix": [[1, -2], [0, "nan"]], "x": ["<a>", "b"]})
    trace = traces(signed)[0]
    assert (trace.zmin, trace.zmax) == (-2, 2)
    assert signed.panels[0].figure.layout.xaxis.ticktext[0] == "&lt;a&gt;"
    assert "1 of 4 values" in signed.note
    positive = traces(drawn({"kind": "heatmap", "title": "H", "matrix": [[0, 0]]}))[0]
    assert (positive.zmin, positive.zmax) == (0, 1)


def test_landscapes_share_one_scale_and_show_unreachable_places():
    arrays = {
        "there": np.array([[0, 1, 2], [1, 2, 3.0]]),
        "back": np.array([[0, np.inf, 5], [1, 2, np.inf]]),
        "way": np.array([[0, 0], [2, 1.0]]),
    }
    panels = [
        {"title": "to", "values": "there", "x": [-1, 1], "y": [0, 2], "marks": [{"name": "goal", "at": [0, 1]}]},
        {"title": "from", "values": "back", "paths": [{"name": "<b>way", "points": "way"}]},
    ]
    drawing = drawn({"kind": "landscape", "title": "E", "panels": panels}, arrays)
    field = traces(drawing)[0]
    assert (field.zmax, tuple(field.x), tuple(field.y)) == (5, (-1, 0, 1), (0, 2)) and field.meta["part"] == "matrix"
    grey, field, way = traces(drawing, 1)
    np.testing.assert_array_equal(np.isnan(grey.z), np.isfinite(arrays["back"]))
    assert field.zmax == 5 and way.name == "&lt;b&gt;way" and "67% of the places" in drawing.panels[1].alt


def test_missing_fields_name_the_figure_and_its_kind():
    for kind in DRAWERS:
        with pytest.raises(InputError, match=f"'T' of kind '{kind}'"):
            drawn({"kind": kind, "title": "T"})


def test_panels_with_one_range_have_the_same_limits():
    panels = [{"x": "z", "range": "one"}, {"x": "h", "range": "one", "label": "latent"}, {"x": "h"}]
    first, second, alone = (panel.figure for panel in drawn({"kind": "scatter", "panels": panels}, ARRAYS).panels)
    reach = 1.05 * max(np.abs(ARRAYS[name][:, :2]).max() for name in ("z", "h"))
    assert first.layout.xaxis.range == second.layout.yaxis.range == pytest.approx((-reach, reach))
    assert second.layout.xaxis.title.text == "latent[0]"
    assert alone.layout.xaxis.range is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "scater", "title": "T"}, "Did you mean 'scatter'"),
        ({"title": "T"}, "Known: bars, curves, film, heatmap, images, landscape, scatter"),
        (scatter(x="zz"), "no array 'zz'. Did you mean 'z'"),
        (scatter(columns=[0, 3]), "has 3 columns"),
        (scatter(columns=[0, -1]), "has 3 columns"),
        (scatter(columns=[0]), "two 'columns'"),
        (scatter(x="label"), "hold numbers"),
        (scatter(color="short"), "same number of rows"),
        (scatter(color="z", color_columns=[0, 1, 2]), "one or two columns"),
        ({"kind": "scatter", "title": "T", "panels": [3]}, "panels"),
        ({"kind": "curves", "title": "T", "series": [{"name": "a", "x": [1], "y": [1, 2]}]}, "same number of rows"),
        ({"kind": "curves", "title": "T", "series": [{"name": "a", "x": [1], "y": ["x"]}]}, "cannot be drawn"),
        ({"kind": "landscape", "title": "T", "panels": [{"values": "zz"}]}, "no array 'zz'"),
        ({"kind": "landscape", "title": "T", "panels": [{"values": "one"}]}, "rows and columns"),
        (
            {"kind": "landscape", "title": "T", "panels": [{"values": "z", "paths": [{"name": "p", "points": "z"}]}]},
            "two columns",
        ),
        ({"kind": "heatmap", "title": "T", "matrix": [[1, 2], [3]]}, "cannot be drawn"),
        ({"kind": "heatmap", "title": "T", "matrix": [1, 2]}, "rows and columns"),
        ({"kind": "heatmap", "title": "T", "matrix": [[1, 2]], "x": ["a"]}, "1 names for 2"),
    ],
)
def test_invalid_specs_are_rejected(spec, message):
    with pytest.raises(InputError, match=message):
        drawn(spec, ARRAYS | {"short": Z[:7], "one": Z[:, 0]})
