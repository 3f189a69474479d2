"""The report page: one self-contained HTML file, written atomically.

The page makes no network requests, and its content security policy forbids them. Only the two scripts written here may
run (they are named by their hashes), so that no text of a record can become code. Equal records and seeds give equal
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from jepatlas import __version__
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_text
from jepatlas.core.records import Status, Verdict
from jepatlas.reporting.chapters import Chapter, overlaid_curves, read_chapters
from jepatlas.reporting.colours import CENTRE, RAMP_STOPS, WHEEL_STOPS
from jepatlas.reporting.drawers import draw
from jepatlas.reporting.drawing import Drawing
from jepatlas.reporting.first_screen import leading_figures, opening, opening_of_several
from jepatlas.reporting.verdict_rows import compare, number, tally, verdict_row

__all__ = ["write_report"]

CHECKED: tuple[Status, ...] = ("failed", "undecided", "passed")
FEW = 3  # figures on the first screen, of all runs together
UNBROKEN = 40  # characters; longer words, such as hashes, may be broken


@dataclass(frozen=True)
class Section:
    """A chapter with its drawings. `leads` are the numbers of those that are shown on the first screen instead."""

    chapter: Chapter
    drawings: Sequence[Drawing]
    leads: Sequence[int] = ()

    @property
    def leading(self) -> list[Drawing]:
        return [self.drawings[place] for place in self.leads]

    @property
    def others(self) -> list[Drawing]:
        return [drawing for place, drawing in enumerate(self.drawings) if place not in self.leads]

    @property
    def checks(self) -> list[Verdict]:
        """Verdicts with a threshold: failed ones first, then undecided ones."""
        judged = [verdict for verdict in self.chapter.verdicts if verdict.status in CHECKED]
        return sorted(judged, key=lambda verdict: CHECKED.index(verdict.status))

    @property
    def metrics(self) -> list[Verdict]:
        """Verdicts without a threshold."""
        return [verdict for verdict in self.chapter.verdicts if verdict.status not in CHECKED]


@dataclass(frozen=True)
class Run:
    """One folder on the page."""

    name: str
    sections: Sequence[Section]
    provenance: Mapping[str, str]

    @property
    def chapters(self) -> list[Chapter]:
        return [section.chapter for section in self.sections]

    @property
    def recipe(self) -> str:
        return next((chapter.recipe for chapter in self.chapters if chapter.recipe), "")

    @property
    def checks(self) -> list[Verdict]:
        return [verdict for section in self.sections for verdict in section.checks]

    @property
    def leading(self) -> list[Drawing]:
        """The drawings of the first screen."""
        return [drawing for section in self.sections for drawing in section.leading]


def write_report(
    folders: Sequence[Path | str], out: Path | str, *, title: str, headline: str = "", seed: int = 0
) -> Path:
    """Write the records of one or more run folders as one page; `seed` chooses the samples in scatter plots.

    It opens with the `headline`, or else with the first sentence of the only run's first checks, or with the number of
    runs that passed.
    """
    if not folders:
        raise InputError("A report needs at least one run folder.")
    names = _names([Path(folder) for folder in folders])
    single = len(folders) == 1
    shown = FEW // len(folders)
    runs = [_run(name, read_chapters(folder), seed, shown) for name, folder in zip(names, folders, strict=True)]
    chapters = {run.name: run.chapters for run in runs}
    script = _asset("page.js")
    page = _template().render(
        title=title,
        runs=runs,
        comparison=[] if single else compare(chapters),
        overlays=_overlays(runs, seed),
        opening=opening(runs[0].chapters, headline) if single else headline or opening_of_several(chapters),
        checks=[verdict for run in runs for verdict in run.checks],
        version=__version__,
        centre=CENTRE,
        wheel=", ".join(WHEEL_STOPS),
        ramp=", ".join(RAMP_STOPS),
        style=Markup(_asset("page.css")),
        plotly=Markup(get_plotlyjs()),
        script=Markup(script),
        script_hashes=" ".join(map(_hash, (get_plotlyjs(), script))),
    )
    write_text(Path(out), page)
    return Path(out)


def _overlays(runs: Sequence[Run], seed: int) -> list[Drawing]:
    """The training curves that several runs share, in one figure."""
    shared = overlaid_curves({run.name: run.chapters for run in runs})
    return [] if shared is None else [draw(shared, {}, seed=seed)]


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest endings of the paths that are distinct."""
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(names):
            return names
    raise InputError(f"The same run folder was given twice: {', '.join(map(str, folders))}.")


def _run(name: str, chapters: Sequence[Chapter], seed: int, shown: int) -> Run:
    """A run, of which at most `shown` figures are on the first screen."""
    leading = leading_figures(chapters)[:shown]
    sections = []
    for place, chapter in enumerate(chapters):
        leads = [figure for owner, figure in leading if owner == place]
        sections.append(Section(chapter, _drawings(name, chapter, seed), leads))
    return Run(name, sections, _provenance(chapters))


def _drawings(name: str, chapter: Chapter, seed: int) -> list[Drawing]:
    try:
        return [draw(spec, chapter.arrays, seed=seed) for spec in chapter.figures]
    except InputError as error:
        raise InputError(f"{name}/{chapter.source}: {error}") from error


def _provenance(chapters: Sequence[Chapter]) -> dict[str, str]:
    """Each key once, with all values that the chapters have for it."""
    values: dict[str, list[str]] = {}
    for chapter in chapters:
        for key, value in chapter.provenance.items():
            values.setdefault(key, []).extend(map(_cell, value if isinstance(value, list) else [value]))
    return {key: ", ".join(dict.fromkeys(texts)) for key, texts in values.items()}


def _cell(value: Any) -> str:
    """Plain data as the text of a table cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores.

    >>> _breakable("bound_<b>")
    Markup('bound_<wbr>&lt;b&gt;')
    """
    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"breakable": _breakable, "cell": _cell, "row": verdict_row, "tally": tally}
    environment.filters["plot"] = lambda figure: json.loads(figure.to_json())
    environment.tests["unbroken"] = lambda value: isinstance(value, str) and len(value) > UNBROKEN and " " not in value
    environment.tests["numeric"] = lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return environment.from_string(_asset("page.html.j2"))


def _asset(name: str) -> str:
    return resources.files("jepatlas.reporting").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
