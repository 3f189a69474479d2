"""Held-out R² of agents and controls as a bar chart, for groups of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jepatlas.core.figures import Bars
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import bars, mean_and_range
from jepatlas.experiments.social.agent_pairs import COMPARED, NAMES, measure_key

__all__ = ["OVER_SEEDS", "r2_figure"]

OVER_SEEDS = "Means over seeds with the lowest and highest"


def r2_figure(
    title: str,
    groups: Mapping[str, Sequence[Result]],
    names: Sequence[str] = COMPARED,
    *,
    legend: Mapping[str, str] = NAMES,
    published: Sequence[float] | None = None,
    note: str = f"{OVER_SEEDS}.",
) -> Bars:
    """One group of bars for each group of pairs, with a bar for the agents and for each control in `names`."""
    series = []
    for name in names:
        key = measure_key("r2", name)
        series.append(bars(legend[name], [mean_and_range(pairs, key) for pairs in groups.values()]))
    return Bars(
        title=title,
        names=list(groups),
        y_label="held-out R²",
        series=series,
        published=None if published is None else list(published),
        note=note,
    )
