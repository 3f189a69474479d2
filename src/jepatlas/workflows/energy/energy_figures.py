"""Figures of energies: audits as curves, and landscapes of the energies to and from a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.figures import Curve, Curves, Landscape, LandscapeMark, LandscapePanel, LandscapePath
from jepatlas.core.linear import subsample
from jepatlas.energy.audit import Audit

__all__ = ["audit_figures", "choose_goal", "grid_of", "landscape"]

POINTS = 200  # of an ROC curve


def audit_figures(found: Audit, name: str = "energy") -> tuple[Curves, ...]:
    """The histogram of triangle gaps and, with a truth, the ROC of unreachable pairs and the calibration curve."""
    figures = [_gap_figure(found)]
    if found.roc is not None:
        figures.append(_roc_figure(found, name))
    if found.curve is not None:
        figures.append(_calibration_figure(found, name))
    return tuple(figures)


def choose_goal(energies: np.ndarray) -> int:
    """The state whose energies are the most asymmetric, as a goal that shows the asymmetry.

    If there are one-way pairs: among the states with the most of them, and then the most two-way pairs, the one with
    the least mean energy to those. Otherwise: the state with the largest mean difference between both directions.

    >>> choose_goal(np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [np.inf] * 3 + [0.0]]))
    3
    """
    reachable = np.isfinite(energies)
    one_way = (reachable != reachable.T).sum(0)
    if not one_way.any():
        differences = np.subtract(energies, energies.T, where=reachable, out=np.zeros(energies.shape))
        return int(np.abs(differences).mean(0).argmax())
    two_way = reachable & reachable.T
    mean_energy = np.where(two_way, energies, 0.0).sum(1) / two_way.sum(1)
    return int(np.lexsort((mean_energy, -two_way.sum(1), -one_way))[0])


def grid_of(positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of states at integer positions (row, column) as a matrix; NaN where there is no state."""
    cells = positions.astype(int)
    field = np.full(cells.max(0) + 1, np.nan)
    field[cells[:, 0], cells[:, 1]] = values
    return field


def landscape(
    title: str,
    panels: Sequence[tuple[str, str]],
    extent: Mapping[str, Sequence[float]],
    goal: Sequence[float],
    paths: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Landscape:
    """Panels (title, array) with the goal marked; `paths` gives the (name, array) of paths drawn on each array."""
    return Landscape(
        title=title,
        note="The two panels of a symmetric energy look alike.",
        label="energy",
        panels=[
            LandscapePanel(
                values=array,
                title=name,
                **extent,
                paths=[LandscapePath(label, points) for label, points in (paths or {}).get(array, ())],
                marks=[LandscapeMark("goal", list(goal))],
            )
            for name, array in panels
        ],
    )


def _gap_figure(found: Audit) -> Curves:
    edges = np.repeat(found.gaps.edges, 2)[1:-1]  # the outline of the histogram
    counts = np.repeat(found.gaps.counts, 2)
    return Curves(
        title="Triangle gaps",
        note="How much shorter a path through other states is than the direct energy, relative to it. All gaps of a "
        "quasimetric are 0.",
        x_label="gap",
        y_label="pairs",
        series=[Curve("pairs", edges.tolist(), counts.tolist())],
    )


def _roc_figure(found: Audit, name: str) -> Curves:
    series = []
    for label, roc in ((f"{name}, all pairs", found.roc), (f"{name}, one-way pairs", found.one_way_roc)):
        if roc is not None:
            false_positives = subsample(roc.false_positive_rate, POINTS)
            true_positives = subsample(roc.true_positive_rate, POINTS)
            series.append(Curve(label, false_positives.tolist(), true_positives.tolist()))
    return Curves(
        title="Detection of unreachable pairs",
        note="On one-way pairs, taken in both directions, a symmetric energy lies on the diagonal.",
        x_label="reachable pairs called unreachable",
        y_label="unreachable pairs called unreachable",
        series=[*series, Curve("chance", [0, 1], [0, 1], dash=True)],
    )


def _calibration_figure(found: Audit, name: str) -> Curves:
    curve = found.curve
    assert curve is not None
    ends = [0.0, float(curve.truth.max())]
    learned = Curve(name, curve.truth.tolist(), curve.median.tolist(), low=curve.low.tolist(), high=curve.high.tolist())
    return Curves(
        title="Learned against exact energies",
        note="Reachable pairs only. The band holds 90% of them.",
        x_label="exact",
        y_label="learned",
        series=[learned, Curve("exact", ends, ends, dash=True)],
    )
