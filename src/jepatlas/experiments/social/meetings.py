"""Pairs of agents as results: what two of them have in common is recorded as if a trial had measured it.

So the numbers of pairs go through the same means, intervals and tables as those of trials; a pair of which one agent
was lost is kept, without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Trial, as_verdicts
from jepatlas.experiments.engine.seed_tables import grouped, select
from jepatlas.experiments.social.charts import Met, meet

__all__ = ["meetings", "paired"]

KINDS = ("scene", "objective", "shuffle", "width", "seed")
Measure = Callable[[Met], dict[str, Estimate]]


def meetings(results: Sequence[Result], measure: Measure) -> list[Result]:
    """For each kind of agent and seed, what the agents of both views have in common."""
    pairs = [select(found, view=0) + select(found, view=1) for found in grouped(results, *KINDS).values()]
    return [paired(pair[0], pair[1], measure) for pair in pairs if len(pair) == 2]


def paired(first: Result, second: Result, measure: Measure) -> Result:
    """One pair: named by the first agent, with what its agents cost and whether their latents vary."""
    place = {name: value for name, value in first.at.items() if name != "view"} | {"to": second.at["width"]}
    trial = Trial(place, first.trial.run, {})
    lost = next((one for one in (first, second) if one.status != "finished"), None)
    if lost is not None:
        return Result(trial, first.folder, lost.status, {"verdicts": []})
    found = measure(meet(first, second)) | _of_both(first, second)
    return Result(trial, first.folder, "finished", {"verdicts": as_verdicts(found, "of a pair of agents")}, first.made)


def _of_both(first: Result, second: Result) -> dict[str, Estimate]:
    both = {name: (first.value(name), second.value(name)) for name in ("directions", "flops", "loss")}
    found = {"directions": min(both["directions"]), "flops": sum(both["flops"]), "loss": float(np.mean(both["loss"]))}
    return {name: Estimate(value, value, value, 2) for name, value in found.items()}
