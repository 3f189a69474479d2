"""Results that users hold in Python: a record with its answer, summary, table, figures and page."""

from __future__ import annotations

import base64
import importlib
import io
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Record, Verdict
from jepatlas.core.verdict_names import plain_name

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from jepatlas import reporting
    from jepatlas.reporting import paper
else:
    pandas = lazy_import("pandas")
    reporting = lazy_import("jepatlas.reporting")
    paper = lazy_import("jepatlas.reporting.paper")

__all__ = ["Result", "count_states", "data_frame", "overall"]

COLUMNS = ("value", "low", "high", "n", "null", "threshold", "direction", "passed", "advice")
VERDICTS = "verdicts"
STATES = {True: "passed", False: "failed", None: "undecided"}
COLOURS = {"passed": "#1a7f37", "failed": "#cf222e", "undecided": "#6e7781"}
CARD_DPI = 72


def overall(verdicts: Sequence[Verdict]) -> bool | None:
    """False if a check failed, None if one is undecided or there are no checks, otherwise True."""
    answers = [verdict.passed for verdict in verdicts if verdict.threshold is not None]
    if False in answers:
        return False
    return True if answers and None not in answers else None


def data_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pandas.DataFrame:
    """These columns of rows as a pandas DataFrame; the first is the index."""
    return pandas.DataFrame(rows, columns=list(columns)).set_index(columns[0])


@dataclass(frozen=True, repr=False)
class Result:
    """A record and what can be done with it. In a notebook it is shown as a card."""

    record: Record

    record_name: ClassVar[str] = "result"
    """Name of the record's files, as the command line writes them."""

    @property
    def passed(self) -> bool | None:
        """Whether all checks passed; None if one is undecided and none failed, or if there are no checks."""
        return overall(self.record.verdicts)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.record.verdicts

    def __getitem__(self, name: str) -> Verdict:
        for verdict in self.record.verdicts:
            if verdict.name == name:
                return verdict
        raise KeyError(f"There is no verdict '{name}'. There are: {', '.join(v.name for v in self.record.verdicts)}.")

    def __contains__(self, name: object) -> bool:
        return any(verdict.name == name for verdict in self.record.verdicts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.record.title}': {STATES[self.passed]} ({_counts(self.verdicts)})>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """What was found, as a short paragraph."""
        return self.record.summary

    def to_frame(self) -> pandas.DataFrame:
        """The verdicts as a pandas DataFrame, one row for each name."""
        return data_frame([asdict(verdict) for verdict in self.verdicts], ("name", *COLUMNS))

    def plot(self, kind: str | None = None) -> list[Axes]:
        """Draw figures with matplotlib and return their axes.

        `kind` is that of a figure of the record ("scatter", "curves", ...), or "verdicts" for the intervals and
        thresholds of all checks. By default the first figure is drawn, or the verdicts if there are none.
        """
        figures = list(self.record.figures)
        if kind is None:
            chosen = figures[:1]
        else:
            chosen = [figure for figure in figures if figure.kind == kind]
            if not chosen and kind != VERDICTS:
                known = sorted({figure.kind for figure in figures} | {VERDICTS})
                raise InputError(f"kind is '{kind}', but this result has: {', '.join(known)}.")
        pyplot: Any = importlib.import_module("matplotlib.pyplot")  # so that notebooks show the sheet
        if not chosen:
            return [paper.draw_verdicts(pyplot.figure(layout="constrained"), self.verdicts)]
        return paper.draw_panels(pyplot.figure(layout="constrained"), chosen, self.record.arrays)

    def save(self, folder: Path | str) -> Path:
        """Write the record to `folder/records/`, as the command line does. `jepatlas report` and `load` read it."""
        folder = Path(folder)
        self.record.save(folder, self.record_name)
        return folder

    def report(self, path: Path | str) -> Path:
        """Write a self-contained HTML page."""
        with tempfile.TemporaryDirectory() as place:
            seed = self.record.provenance.get("seed") or 0
            return reporting.write_report([self.report_folder(Path(place))], path, title=self.record.title, seed=seed)

    def report_folder(self, place: Path) -> Path:
        """The folder that pages are drawn from: a new one in `place`, with the record."""
        folder = place / self.record.title.replace("/", "-")
        self.record.save(folder, self.record_name)
        return folder

    def _repr_html_(self) -> str:
        """A card for notebooks: the answer, the counts, the summary, a figure, and failed checks to unfold."""
        state = STATES[self.passed]
        parts = [f"<b>{escape(self.record.title)}</b> {_chip(state, COLOURS[state])}", _count_chips(self.verdicts)]
        parts.append(f'<p style="margin:.5em 0">{escape(self.summary())}</p>')
        if self.record.figures:
            parts.append(self._image(self.record.figures[0]))
        rows = [_row(verdict) for verdict in self.verdicts if _is_open(verdict)]
        if rows:
            parts.append(f"<details><summary>Failed and undecided checks</summary>{''.join(rows)}</details>")
        style = "border:1px solid #d0d7de;border-radius:6px;padding:.8em;max-width:52em;font-family:sans-serif"
        return f'<div style="{style}">{"".join(parts)}</div>'

    def _image(self, figure: Figure) -> str:
        png = io.BytesIO()
        paper.write_png(png, [figure], self.record.arrays, dpi=CARD_DPI)
        data = base64.b64encode(png.getvalue()).decode()
        return f'<img style="max-width:100%" alt="{escape(figure.title)}" src="data:image/png;base64,{data}">'


def _is_open(verdict: Verdict) -> bool:
    """Whether a check failed or is undecided."""
    return verdict.status in ("failed", "undecided")


def count_states(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many checks passed, failed and are undecided. Metrics without a threshold are not checks."""
    states = [verdict.status for verdict in verdicts]
    return {state: states.count(state) for state in COLOURS}


def _counts(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{count} {state}" for state, count in count_states(verdicts).items())


def _count_chips(verdicts: Sequence[Verdict]) -> str:
    chips = [_chip(f"{count} {state}", COLOURS[state]) for state, count in count_states(verdicts).items() if count]
    return f'<div style="margin-top:.4em">{" ".join(chips)}</div>'


def _chip(text: str, colour: str) -> str:
    style = f"background:{colour};color:#fff;border-radius:1em;padding:.1em .7em;font-size:85%;white-space:nowrap"
    return f'<span style="{style}">{escape(text)}</span>'


def _row(verdict: Verdict) -> str:
    sign = "≥" if verdict.direction == "higher" else "≤"
    numbers = f"{verdict.value:.4g} [{verdict.low:.4g}, {verdict.high:.4g}], wanted {sign} {verdict.threshold:.4g}"
    name = f"<b>{escape(plain_name(verdict.name))}</b> <code>{escape(verdict.name)}</code>"
    text = f"{name} {escape(numbers)}. {escape(verdict.advice)}"
    return f'<div style="margin:.3em 0;font-size:90%">{_chip(verdict.status, COLOURS[verdict.status])} {text}</div>'
