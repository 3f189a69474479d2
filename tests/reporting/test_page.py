from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.records import Verdict
from jepatlas.reporting import Chapter, write_report
from jepatlas.reporting.chapters import overlaid_curves, read_chapters
from jepatlas.reporting.verdict_rows import compare, verdict_row

EVIL = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """Collects the HTML elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def evil_record() -> dict:
    verdict = Verdict(EVIL, 1.0, 0.9, 1.1, 5, 0.0, 0.5, "higher", True, EVIL)
    series = [{"name": EVIL, "x": [1, 2], "y": [1, 2]}, {"name": "b", "x": [1], "y": [1]}]
    return {
        "title": EVIL,
        "summary": EVIL,
        "provenance": {EVIL: EVIL, "seed": [EVIL]},
        "verdicts": [verdict.to_json()],
        "tables": [{"title": EVIL, "columns": [EVIL], "rows": [[EVIL], [{"a": EVIL}]]}],
        "figures": [
            {"kind": "curves", "title": f'{EVIL}" onload="alert(1)', "note": EVIL, "x_label": EVIL, "series": series},
            {"kind": "scatter", "title": EVIL, "panels": [{"title": EVIL, "x": EVIL, "color": EVIL}]},
            {"kind": "heatmap", "title": EVIL, "matrix": [[1]], "x": [EVIL], "y": [EVIL]},
        ],
        "arrays": "evil.safetensors",
    }


@pytest.fixture
def evil_run(tmp_path):
    folder = tmp_path / "evil"
    write_arrays(folder / "records" / "evil.safetensors", {EVIL: np.eye(2)})
    write_json(folder / "records" / "evil.json", evil_record())
    return folder


def test_one_run(run, tmp_path):
    out = write_report([run], tmp_path / "report.html", title="A run")
    page = out.read_text()
    assert page.count('class="figure"') == 3 + 3 + 1 + 1 + 1 + 1
    for text in (
        "A run",
        "695eb0d",
        "kind: lejepa",
        "≥ 0.95",
        "≤ 0.05",
        "✗",
        "failed",
        "informational",
        "[0.992, 0.999]",
    ):
        assert text in page
    assert "Runs compared" not in page
    assert str(tmp_path) not in page


def test_the_page_may_load_submit_and_rebase_nothing(run, tmp_path):
    found = Tags(write_report([run], tmp_path / "report.html", title="T").read_text()).found
    (policy,) = [tag["content"] for name, tag in found if tag.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert all(rules[name] == "'none'" for name in ("default-src", "form-action", "base-uri"))
    assert "unsafe" not in rules["script-src"]
    assert set(re.findall(r"https?:", policy)) == set()


def test_same_records_give_identical_pages(run, tmp_path):
    pages = [write_report([run], tmp_path / name, title="T", seed=3).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


def test_several_runs_are_compared(two_runs, tmp_path):
    page = write_report(two_runs, tmp_path / "report.html", title="T").read_text()
    assert "Runs compared" in page and "lejepa" in page and "vicreg" in page
    ids = [attrs["id"] for _, attrs in Tags(page).found if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', page)
    assert links and set(links) <= set(ids)


def test_the_first_screen_of_several_runs_tells_which_failed_and_shows_a_figure_of_each(two_runs, tmp_path):
    page = write_report(two_runs, tmp_path / "report.html", title="T").read_text()
    first, _ = page.split('<section id="comparison">')
    sentence = re.search(r'<p class="opening">(.*?)</p>', first)
    assert sentence is not None and "of 2 runs" in sentence[1] and "vicreg" in sentence[1]
    captions = re.findall(r"<figcaption><b>Figure \d+\.</b> (\w+):", first)
    assert captions == ["lejepa", "vicreg"]


def test_folders_of_equal_name_are_distinguished_and_duplicates_rejected(two_runs, tmp_path):
    twin = tmp_path / "other" / "lejepa"
    write_json(twin / "records" / "a.json", {"title": "Twin"})
    page = write_report([two_runs[0], twin], tmp_path / "report.html", title="T").read_text()
    assert "other/lejepa" in page
    with pytest.raises(InputError, match="given twice"):
        write_report([twin, twin], tmp_path / "report.html", title="T")
    with pytest.raises(InputError, match="at least one"):
        write_report([], tmp_path / "report.html", title="T")


def test_no_text_of_a_record_becomes_markup(evil_run, tmp_path):
    page = write_report([evil_run], tmp_path / "report.html", title=EVIL).read_text()
    assert EVIL not in page
    tags = Tags(page).found
    scripts = [attrs for tag, attrs in tags if tag == "script"]
    assert sum(attrs.get("type") == "application/json" for attrs in scripts) == 3
    assert len(scripts) == 3 + 2
    assert not any(name.startswith("on") for _, attrs in tags for name in attrs)


def test_invalid_figure_names_its_record_and_keeps_the_previous_page(run, tmp_path):
    out = write_report([run], tmp_path / "report.html", title="T")
    before = out.read_bytes()
    path = run / "records" / "sweep.json"
    write_json(path, read_json(path) | {"figures": [{"kind": "pie", "title": "P"}]})
    with pytest.raises(InputError, match=r"gaussian-2d/records/sweep\.json: Figure 'P'"):
        write_report([run], out, title="T")
    assert out.read_bytes() == before


def test_verdicts_are_written_in_words():
    row = verdict_row(Verdict("r2", 0.5, -0.25, float("inf"), 1500, None, None, "lower", None, "Look."))
    assert (row.value, row.interval, row.n) == ("0.5", "[−0.25, ∞]", "1,500")
    assert (row.symbol, row.status, row.threshold, row.gauge) == ("○", "informational", "none; lower is better", None)


def test_gauge_orders_value_interval_null_and_threshold():
    gauge = verdict_row(Verdict("r2", 0.9, 0.8, 1.0, 9, 0.0, 0.7, "higher", True, "")).gauge
    assert gauge is not None and gauge.null is not None and gauge.threshold is not None
    assert 0 < gauge.null < gauge.threshold < gauge.low < gauge.value < gauge.high < 100
    assert gauge.good == (gauge.threshold, 100)


def test_a_count_that_equals_its_threshold_has_a_gauge():
    gauge = verdict_row(Verdict("coverage", 2.0, 2.0, 2.0, 9, None, 2.0, "higher", True, "")).gauge
    assert gauge is not None and gauge.good is not None
    assert gauge.good[0] == gauge.value == gauge.threshold < gauge.good[1]


def test_duplicate_verdict_names_are_compared_by_chapter():
    r2 = Verdict("r2", 0.5, 0.4, 0.6, 10, None, None, "higher", None, "")
    double = [Chapter("A", "a.json", verdicts=(r2,)), Chapter("B", "b.json", verdicts=(r2,))]
    single = [Chapter("A", "a.json", verdicts=(r2,))]
    rows = compare({"one": double, "two": single})
    assert [row.label for row in rows] == ["r2 (A)", "r2 (B)"]
    assert [[len(cell) for cell in row.cells] for row in rows] == [[1, 1], [1, 0]]
    assert [row.label for row in compare({"one": single, "two": single})] == ["r2"]


def test_report_does_not_import_torch():
    code = "import sys, jepatlas.reporting; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_training_curves_of_several_runs_are_overlaid(tmp_path):
    for name, terms in {"a": {"loss": 1.0, "sigreg": 0.5}, "b": {"loss": 2.0, "other": 0.1}}.items():
        (tmp_path / name).mkdir()
        rows = [json.dumps({"step": step} | {key: value / step for key, value in terms.items()}) for step in (1, 2)]
        (tmp_path / name / "metrics.jsonl").write_text("\n".join(rows))
    shared = overlaid_curves({name: read_chapters(tmp_path / name) for name in ("a", "b")})
    assert shared is not None and shared.panels is not None
    (panel,) = shared.panels
    assert panel.title == "loss"
    assert [(curve.name, curve.y) for curve in panel.series] == [("a", [1.0, 0.5]), ("b", [2.0, 1.0])]
    page = write_report([tmp_path / "a", tmp_path / "b"], tmp_path / "report.html", title="T").read_text()
    assert "Training curves of the runs" in page
    assert overlaid_curves({"a": read_chapters(tmp_path / "a")}) is None
