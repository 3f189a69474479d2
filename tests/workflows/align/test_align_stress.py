"""Stress records: their curves and tables."""

from __future__ import annotations

import numpy as np
import pytest
from workflows.align.models import Models, matched

from jepatlas.alignment.stress import Protocol
from jepatlas.alignment.stress.stress_curve import Score
from jepatlas.reporting import draw
from jepatlas.workflows.align import stress
from jepatlas.workflows.align.align_stress import halvings, score_cells


@pytest.mark.parametrize(("width", "widths"), [(1, [1]), (3, [1, 3]), (8, [1, 2, 4, 8]), (96, [6, 12, 24, 48, 96])])
def test_widths_are_successive_halves(width: int, widths: list[int]):
    assert halvings(width) == widths


def test_infinite_condition_number_has_no_interval():
    lost = Score.of([np.inf, np.inf], [1.0, 2.0], log=True)
    assert np.isnan(lost.estimate.low) and score_cells(lost, 2)[0] == "inf"
    assert score_cells(Score.of([0.5, 0.5], [0.0, 0.1]), 2) == ("0.5 [0.5, 0.5]", "0.05")


@pytest.mark.slow
def test_record_contains_four_curves():
    models = Models.draw(rows=120)
    tiny = Protocol(seeds=2)
    record = stress(matched(models.a, models.b, labels=models.label), models.group, seed=0, protocol=tiny)
    assert (
        len(record.tables) == 12 and len(record.figures) == 8
    )  # tables of map, pairs and probe; figures of R² and the migrated probe
    cells = [cell for table in record.tables for row in table.rows for cell in row[4:]]
    assert all(cell.count("[") <= 1 and ";" not in cell for cell in cells)
    assert all(len(row) == len(table.columns) <= 11 for table in record.tables for row in table.rows)
    assert all(draw(figure).title for figure in record.figures)
    assert record.provenance["seeds"] == 2 and "2 seeds" in record.summary
    line = stress(matched(models.a, models.b[:, :1]), None, seed=0, protocol=tiny)
    assert len(line.tables) == 6 and len(line.figures) == 3  # no width curve for a one-dimensional target
    assert all(np.isfinite(figure.series[0].y).all() for figure in line.figures)
