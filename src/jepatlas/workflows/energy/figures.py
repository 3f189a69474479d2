"""Figures of an energy: its audit as curves, and landscapes to and from a goal, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.linear import subsample
from jepatlas.energy.audit import Audit

__all__ = ["audit_figures", "choose_goal", "grid_of", "landscape"]


def audit_figures(found: Audit, name: str = "energy") -> tuple[dict[str, Any], ...]:
    """Triangle gaps always; the ROC of reachability and the calibration where there is a truth."""
    figures = [_gaps(found)]
    if found.roc is not None:
        figures.append(_roc(found, name))
    if found.curve is not None:
        figures.append(_calibration(found, name))
    return tuple(figures)


def _gaps(found: Audit) -> dict[str, Any]:
    edges, counts = found.gaps.edges, found.gaps.counts
    return {
        "kind": "curves",
        "title": "Triangle gaps",
        "note": "How much shorter a way through other states is than the direct one, as a share. A quasimetric has all "
        "pairs at 0.",
        "x_label": "gap",
        "y_label": "pairs",
        # a line along the tops of the bars
        "series": [{"name": "pairs", "x": np.repeat(edges, 2)[1:-1].tolist(), "y": np.repeat(counts, 2).tolist()}],
    }


def _roc(found: Audit, name: str) -> dict[str, Any]:
    series = [
        {"name": label, "x": _thin(roc.false_positive_rate).tolist(), "y": _thin(roc.true_positive_rate).tolist()}
        for label, roc in ((f"{name}, all pairs", found.roc), (f"{name}, one-way pairs", found.one_way_roc))
        if roc is not None
    ]
    chance = {"name": "chance", "x": [0, 1], "y": [0, 1], "dash": True}
    return {
        "kind": "curves",
        "title": "Does it know where there is no way?",
        "note": "On one-way pairs, taken in both directions, a symmetric energy lies on the diagonal by necessity.",
        "x_label": "reachable pairs taken for unreachable",
        "y_label": "unreachable pairs found",
        "series": [*series, chance],
    }


def _calibration(found: Audit, name: str) -> dict[str, Any]:
    curve = found.curve
    assert curve is not None
    line = {
        key: getattr(curve, field).tolist()
        for key, field in (("x", "truth"), ("y", "median"), ("low", "low"), ("high", "high"))
    }
    ends = [0.0, float(curve.truth.max())]
    return {
        "kind": "curves",
        "title": "Learned against exact energies",
        "note": "Reachable pairs only; the band holds nine tenths of them.",
        "x_label": "exact",
        "y_label": "learned",
        "series": [{"name": name} | line, {"name": "exact", "x": ends, "y": ends, "dash": True}],
    }


def _thin(values: np.ndarray, most: int = 200) -> np.ndarray:
    """At most so many points of a long curve, with both ends."""
    return subsample(values, most)


def choose_goal(energies: np.ndarray) -> int:
    """A state that is easier to reach than to leave, or the reverse: there one sees what is not symmetric.

    Of all that have a way in one direction only to most others, the one in the midst of its own side; where every way
    has a way back, the one whose ways differ most.

    >>> choose_goal(np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [np.inf] * 3 + [0.0]]))
    3
    """
    there = np.isfinite(energies)
    lonely = (there != there.T).sum(0)
    if not lonely.any():
        apart = np.subtract(energies, energies.T, where=there, out=np.zeros(energies.shape))
        return int(np.abs(apart).mean(0).argmax())
    both = there & there.T  # ways there and back: which states lie on one side
    midst = np.where(both, energies, 0.0).sum(1) / both.sum(1)
    return int(np.lexsort((midst, -both.sum(1), -lonely))[0])


def grid_of(positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """One number for each state at whole positions (row, column), as rows and columns; NaN where there is no state."""
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
) -> dict[str, Any]:
    """Panels (title, array) over one plane; `paths` are those (name, array) of a panel, by its array."""
    return {
        "kind": "landscape",
        "title": title,
        "note": "Where going there and coming back look alike, the energy is symmetric.",
        "label": "energy",
        "panels": [
            {
                "title": name,
                "values": array,
                **extent,
                "marks": [{"name": "goal", "at": list(goal)}],
                "paths": [{"name": label, "points": points} for label, points in (paths or {}).get(array, ())],
            }
            for name, array in panels
        ],
    }
