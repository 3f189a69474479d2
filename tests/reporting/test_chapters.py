from __future__ import annotations

import json

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_json, write_text
from jepatlas.reporting import read_chapters
from jepatlas.reporting.chapters import POINTS, envelope


def test_chapters_of_a_run_start_with_training(run):
    training, certificate, sweep = read_chapters(run)
    assert [training.title, training.source] == ["Training", "metrics.jsonl"]
    assert "kind: lejepa" in training.recipe
    assert [panel.title for panel in training.figures[0].panels] == ["loss", "sigreg", "invariance"]
    assert all(len(panel.series[0].x) <= POINTS for panel in training.figures[0].panels)
    assert [verdict.name for verdict in certificate.verdicts][:2] == ["r2", "orthogonality"]
    assert certificate.arrays["h"].shape == (3000, 2)
    assert sweep.provenance["seed"] == [0, 1, 2, 3, 4]


def test_record_needs_only_a_title(tmp_path):
    write_json(tmp_path / "records" / "a.json", {"title": "Alone", "arrays": None, "verdicts": None})
    (chapter,) = read_chapters(tmp_path)
    assert chapter.title == "Alone" and chapter.verdicts == () and chapter.arrays == {}


def test_records_in_scale_folders_are_found(tmp_path):
    """The layout written by `reproduce --out DIR`."""
    write_json(tmp_path / "small" / "records" / "a.json", {"title": "One"})
    write_text(tmp_path / "run" / "recipe.yaml", "seed: 0\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match=rf"nothing to report.*these run folders: {tmp_path}/run, {tmp_path}/small\. R"
    ):
        read_chapters(tmp_path)
    with pytest.raises(InputError, match=r"records/\*\.json\.$"):
        read_chapters(tmp_path / "empty")


def test_recipe_alone_is_a_run(tmp_path):
    write_text(tmp_path / "recipe.yaml", "seed: 0\n")
    (chapter,) = read_chapters(tmp_path)
    assert (chapter.title, chapter.recipe, chapter.figures) == ("Training", "seed: 0\n", ())


def test_non_finite_values_are_reported_with_their_first_step(tmp_path):
    rows = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": "nan"}, {"step": 3, "loss": "inf"}, {"step": 4, "phase": "b"}]
    write_text(tmp_path / "metrics.jsonl", "\n".join(map(json.dumps, rows)))
    (chapter,) = read_chapters(tmp_path)
    assert "first at step 2" in chapter.figures[0].note
    assert [panel.title for panel in chapter.figures[0].panels] == ["loss"]


def test_outline_keeps_ends_and_extremes():
    x = np.arange(50_000.0)
    y = np.sin(x / 700)
    y[12_345], y[40_001] = 9.0, -9.0
    kept, values = envelope(x, y)
    assert len(kept) <= POINTS and (np.diff(kept) > 0).all()
    assert (values == y[kept.astype(int)]).all()
    assert (kept[0], kept[-1], values.max(), values.min()) == (0, 49_999, 9.0, -9.0)


@pytest.mark.parametrize("text", ['{"title": "cut', "[]", '{"summary": "no title"}', '{"title": 3}', "\x00"])
def test_broken_record_is_named(tmp_path, text):
    write_text(tmp_path / "records" / "broken.json", text)
    with pytest.raises(InputError, match=r"broken\.json"):
        read_chapters(tmp_path)


@pytest.mark.parametrize("line", ['{"step": 1, "lo', "3", '{"loss": 1.0}', '{"step": "one"}'])
def test_broken_metrics_line_is_named(tmp_path, line):
    write_text(tmp_path / "metrics.jsonl", '{"step": 0, "loss": 1.0}\n' + line + '\n{"step": 9, "loss": 1.0}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl, line 2"):
        read_chapters(tmp_path)


def test_truncated_last_metrics_line_is_ignored(tmp_path):
    write_text(tmp_path / "metrics.jsonl", '{"step": 5, "loss": 1.0}\n{"step": 6, "lo')
    (training,) = read_chapters(tmp_path)
    assert "step 5" in training.summary


def test_broken_recipe_is_named(tmp_path):
    write_text(tmp_path / "recipe.yaml", "a: [1, 2")
    with pytest.raises(InputError, match=r"recipe\.yaml"):
        read_chapters(tmp_path)


VERDICT = {
    "name": "r2",
    "value": 1.0,
    "low": 1.0,
    "high": 1.0,
    "n": 5,
    "null": None,
    "threshold": None,
    "direction": "higher",
    "passed": None,
    "advice": "",
}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"verdicts": {}}, "'verdicts' must be a list"),
        ({"verdicts": [{"name": "r2"}]}, "is not a verdict"),
        ({"verdicts": [VERDICT | {"value": "many"}]}, "is not a verdict"),
        ({"verdicts": [VERDICT | {"direction": "up"}]}, "'direction' is 'up'"),
        ({"verdicts": [VERDICT | {"passed": "yes"}]}, "'passed' is 'yes'"),
        ({"verdicts": [VERDICT | {"n": "many"}]}, "'n' is 'many'"),
        ({"verdicts": [VERDICT | {"value": None}]}, "'value' is None"),
        ({"figures": ["scatter"]}, "a figure must be an object"),
        ({"figures": [{"kind": "heatmap", "matrix": [[1]], "colour": "red"}]}, r"a\.json.*'colour'"),
        ({"tables": [{"title": "t", "columns": ["a"], "rows": [[1, 2]]}]}, "row 0 of table 't' has 2 cells"),
        ({"tables": [{"title": "t", "columns": ["a"]}]}, "'rows'"),
        ({"arrays": "../secret.npz"}, "beside the record"),
        ({"arrays": "absent.npz"}, "There is no file"),
    ],
)
def test_invalid_field_is_named(tmp_path, part, message):
    write_json(tmp_path / "records" / "a.json", {"title": "A", **part})
    with pytest.raises(InputError, match=message):
        read_chapters(tmp_path)


def test_folder_without_records_lists_the_expected_files(tmp_path):
    with pytest.raises(InputError, match=r"recipe\.yaml, metrics\.jsonl or records"):
        read_chapters(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        read_chapters(tmp_path / "absent")
