"""Reports in a real browser: Chromium opens the page from file://."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import cos, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jepatlas.core.arrays import write_arrays
from jepatlas.core.figures import figure_from_json
from jepatlas.core.files import write_json
from jepatlas.core.records import Record, Verdict
from jepatlas.reporting import write_report

pytestmark = pytest.mark.browser
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LEVELS = ("error", "warning", "trace")  # plotly logs warnings as traces
TICKS = "getComputedStyle(document.querySelector('.xtick text')).fill"
UNDRAWN = '.figure:not([data-drawn="true"])'


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        yield instance
        instance.close()


def save(folder: Path, figures: Sequence[dict[str, Any]], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    specs = tuple(figure_from_json(figure) for figure in figures)
    Record("Planning", "Three episodes.", {}, figures=specs, arrays=arrays or {}).save(folder, "planning")


class Visit:
    """A rendered page with its console errors and network requests."""

    def __init__(self, browser, path: Path, *, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in LEVELS else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(UNDRAWN, state="detached", timeout=60_000)

    def check(self) -> None:
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        sizes = self.page.evaluate("""() => [...document.querySelectorAll('.figure')].map((div) => {
            const box = div.querySelector('svg, canvas').getBoundingClientRect(); return [box.width, box.height] })""")
        assert sizes and all(width > 100 and height > 100 for width, height in sizes)
        overflow = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(overflow) <= 0

    def background(self) -> str:
        return self.page.evaluate("() => getComputedStyle(document.body).backgroundColor")

    def tick_colour(self) -> str:
        return self.page.evaluate(f"() => {TICKS}")

    def other_ticks(self, than: str) -> str:
        """The colour of ticks after it has changed: figures are redrawn with a delay after the theme changes."""
        self.page.wait_for_function(f"(old) => {TICKS} !== old", arg=than, timeout=30_000)
        return self.tick_colour()


@pytest.mark.parametrize("width", [390, 1280])
def test_one_run_is_drawn_in_light_and_dark(browser, run, tmp_path, width):
    out = write_report([run], tmp_path / "report.html", title="One run")
    seen = set()
    for scheme in ("light", "dark"):
        visit = Visit(browser, out, width=width, scheme=scheme)
        visit.check()
        seen.add((visit.background(), visit.tick_colour()))
        visit.page.close()
    (paper, ticks), (other_paper, other_ticks) = seen
    assert paper != other_paper and ticks != other_ticks


@pytest.mark.parametrize("width", [390, 1280])
def test_several_runs_are_drawn(browser, two_runs, tmp_path, width):
    visit = Visit(browser, write_report(two_runs, tmp_path / "report.html", title="Two runs"), width=width)
    visit.check()
    assert visit.page.locator("table.comparison tbody tr").count() == 5
    visit.page.close()


@pytest.mark.parametrize("width", [320, 600, 900, 1280])
def test_labels_of_narrow_panels_are_not_clipped(browser, tmp_path, width):
    panels = [{"title": name, "series": [{"name": "E", "x": [0, 1], "y": [1, 0]}]} for name in "abc"]
    figure = {"kind": "curves", "title": "T", "y_label": "energy / energy at the start", "panels": panels}
    save(tmp_path, [figure])
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"), width=width)
    room = """() => [...document.querySelectorAll('.figure')].map((div) => {
        const [box, label] = [div, div.querySelector('.ytitle')].map((one) => one.getBoundingClientRect());
        return Math.min(label.top - box.top, box.bottom - label.bottom, label.left - box.left) })"""
    found = visit.page.evaluate(room)
    assert len(found) == 3 and min(found) >= 0
    visit.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_of_bars_do_not_overlap(browser, tmp_path, width):
    names = [f"linear probe on migrated latents, part {number}" for number in range(7)]
    series = [{"name": "accuracy", "y": [0.5] * 7}]
    save(tmp_path, [{"kind": "bars", "title": "Probes", "names": names, "series": series}])
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"), width=width)
    visit.check()
    labels = visit.page.evaluate("""() => [...document.querySelectorAll('.xtick text')].map((text) => {
        const [box, { a, b }, place] = [text.getBBox(), text.getScreenCTM(), text.getBoundingClientRect()];
        return { angle: Math.atan2(b, a), x: place.x + place.width / 2, width: box.width, height: box.height } })""")
    assert len(labels) == 7
    for left, right in pairwise(labels):
        step = right["x"] - left["x"]
        level = step * abs(cos(left["angle"])) >= (left["width"] + right["width"]) / 2
        assert level or step * abs(sin(left["angle"])) >= 0.8 * left["height"]
    visit.page.close()


def test_figures_follow_the_theme_and_print_colours(browser, run, tmp_path):
    visit = Visit(browser, write_report([run], tmp_path / "report.html", title="T"))
    before = visit.tick_colour()
    visit.page.emulate_media(color_scheme="dark")
    dark = visit.other_ticks(before)
    visit.page.emulate_media(media="print", color_scheme="dark")
    assert visit.other_ticks(dark) == before
    visit.check()
    visit.page.close()


def test_hovered_sample_is_highlighted_in_every_panel(browser, run, tmp_path):
    visit = Visit(browser, write_report([run], tmp_path / "report.html", title="T"))
    plate = visit.page.locator(".plate.scatter.wide")
    plate.scroll_into_view_if_needed()
    plate.locator(".figure").first.locator(".nsewdrag").hover()
    labels = plate.locator(".hovertext")
    labels.nth(2).wait_for(timeout=10_000)
    first_lines = labels.evaluate_all("(all) => all.map((label) => label.querySelector('tspan').textContent)")
    assert len(first_lines) == 3 and len(set(first_lines)) == 1 and first_lines[0].startswith("sample ")
    visit.check()
    visit.page.close()


def test_figures_can_be_saved_and_are_not_uploaded(browser, run, tmp_path):
    visit = Visit(browser, write_report([run], tmp_path / "report.html", title="T"))
    figure = visit.page.locator(".figure").first
    buttons = figure.locator(".modebar-btn").evaluate_all("(all) => all.map((button) => button.dataset.title)")
    assert buttons == ["Download plot as a PNG", "Zoom", "Pan", "Reset axes"]
    figure.hover()
    with visit.page.expect_download() as download:
        figure.locator(".modebar-btn").first.click()
    assert download.value.suggested_filename.endswith(".png")
    visit.check()
    visit.page.close()


def test_text_of_a_record_is_not_executed(browser, tmp_path):
    evil = '<img src=x onerror="alert(1)"><script>alert(1)</script><a href="javascript:alert(1)">b</a>'
    folder = tmp_path / "evil"
    write_arrays(folder / "records" / "a.csv", {"z": np.eye(3)})
    series = [{"name": evil, "x": [1, 2], "y": [1, 2]}, {"name": "b", "x": [1], "y": [1]}]
    figures = [
        {"kind": "scatter", "title": evil, "panels": [{"title": evil, "x": "z", "color": "z"}]},
        {"kind": "curves", "title": evil, "x_label": evil, "y_label": evil, "series": series},
        {"kind": "heatmap", "title": evil, "matrix": [[1, 2]], "x": [evil, "b"], "y": [evil]},
    ]
    record = {"title": evil, "summary": evil, "provenance": {evil: evil}, "figures": figures, "arrays": "a.csv"}
    write_json(folder / "records" / "a.json", record)
    visit = Visit(browser, write_report([folder], tmp_path / "report.html", title=evil), width=390)
    visit.check()
    assert visit.page.locator("img[src=x], a[href^=javascript]").count() == 0
    assert visit.page.locator(".figure a").count() == 0
    visit.page.close()


@pytest.mark.parametrize("width", [320, 390, 1200, 1600])
def test_film_strips_have_equal_size_and_are_enlarged(browser, tmp_path, width):
    frames = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
    strips = [{"name": name, "frames": "seen"} for name in ("driven", "imagined", "goal")]
    panels = [{"title": f"Task {number}: not reached in 80 steps", "strips": strips} for number in range(6)]
    figures = (
        {"kind": "film", "title": "Six", "panels": panels},
        {"kind": "film", "title": "One", "panels": panels[:1]},
    )
    save(tmp_path, figures, {"seen": frames})
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"), width=width)
    sizes = """() => [...document.querySelectorAll('.plate')].map((plate) =>
        [...plate.querySelectorAll('.frames')].map((div) => div.getBoundingClientRect().width))"""
    for widths in visit.page.evaluate(sizes):
        assert min(widths) >= 96 and max(widths) - min(widths) < 1
    overflow = """() => [document.documentElement, ...document.querySelectorAll('.panel')].map((one) =>
        one.scrollWidth - one.clientWidth)"""
    assert max(visit.page.evaluate(overflow)) <= 0
    visit.page.close()


def test_films_play_and_pause_under_the_pointer(browser, tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    strips = [{"name": "driven", "frames": "driven"}, {"name": "goal", "frames": "goal"}]
    curves = {"kind": "curves", "title": "energy", "panels": [{"series": [{"name": "E", "x": [0, 1], "y": [1, 0]}]}]}
    figure = {"kind": "film", "title": "Episodes", "panels": [{"title": "Task 1", "strips": strips}]}
    save(tmp_path, [figure, curves], {"driven": frames, "goal": frames[:1]})
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"))
    visit.check()
    where = "() => getComputedStyle(document.querySelector('.frames')).backgroundPositionX"
    seen = {visit.page.evaluate(where) for _ in range(12) if visit.page.wait_for_timeout(90) is None}
    assert len(seen) > 3
    visit.page.hover(".frames")
    still = {visit.page.evaluate(where) for _ in range(4) if visit.page.wait_for_timeout(150) is None}
    assert len(still) == 1
    visit.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_sample_images_are_enlarged_and_row_names_stay_visible(browser, tmp_path, width):
    images = np.random.default_rng(0).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8)
    rows = [{"name": "camera000", "images": "seen"}, {"name": "camera160", "images": "seen"}]
    figures = (
        {"kind": "images", "title": "Views", "panels": [{"captions": list("abcdefgh"), "rows": rows}]},
        {"kind": "heatmap", "title": "CKA", "matrix": [[1.0]]},
    )
    save(tmp_path, figures, {"seen": images})
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"), width=width)
    visit.check()
    shown = visit.page.evaluate("""() => [...document.querySelectorAll('.samples img')].map((image) => [
        image.naturalWidth, image.getBoundingClientRect().width, getComputedStyle(image).imageRendering])""")
    assert len(shown) == 16 and all(one[0] == 16 and one[1] >= 64 and one[2] == "pixelated" for one in shown)
    visit.page.evaluate("() => document.querySelector('.samples').scrollTo({left: 10000})")
    name = visit.page.locator(".samples th").first.bounding_box()
    assert name is not None and name["x"] >= 0
    visit.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_toolbar_covers_no_data(browser, run, tmp_path, width):
    visit = Visit(browser, write_report([run], tmp_path / "report.html", title="T"), width=width)
    for number in range(visit.page.locator(".figure").count()):
        figure = visit.page.locator(".figure").nth(number)
        if figure.locator(".nsewdrag").count():
            figure.scroll_into_view_if_needed()
            figure.hover()
            bar = figure.locator(".modebar").bounding_box()
            data = figure.locator(".nsewdrag").first.bounding_box()
            assert bar["y"] + bar["height"] <= data["y"] + 1 and bar["x"] >= 0 and bar["x"] + bar["width"] <= width
    visit.check()
    visit.page.close()


def test_codes_of_verdicts_break_after_underscores(browser, tmp_path):
    name = "orthogonality_of_the_whitened_latents_in_the_coordinates_of_the_target"
    verdict = Verdict(name, 0.9, 0.8, 1.0, 9, None, 0.7, "higher", True, "Good.")
    figure = figure_from_json({"kind": "heatmap", "title": "T", "matrix": [[1.0]]})
    Record("T", "S", {}, (verdict,), figures=(figure,)).save(tmp_path, "one")
    visit = Visit(browser, write_report([tmp_path], tmp_path / "report.html", title="T"), width=1280)
    visit.page.evaluate("() => document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    lines = visit.page.evaluate("""() => {
        const found = [];
        const range = document.createRange();
        const walk = document.createTreeWalker(document.querySelector('.verdict .name'), NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node; node = walk.nextNode())
            for (let at = 0; at < node.length; at++) {
                range.setStart(node, at); range.setEnd(node, at + 1);
                const top = Math.round([...range.getClientRects()].at(-1).top);
                if (found.length && found.at(-1)[0] === top) found.at(-1)[1] += node.data[at];
                else found.push([top, node.data[at]]);
            }
        return found.map(([_, text]) => text.trim()).filter(Boolean) }""")
    assert len(lines) > 1 and all(line.endswith("_") for line in lines[:-1])
    visit.check()
    visit.page.close()
