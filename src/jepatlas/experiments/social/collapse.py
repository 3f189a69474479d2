"""What follows where agents collapsed: where latents of a pair vary along less than 2 directions.

Such latents align easily, and how they lie tells little of what was learned: what is measured of them speaks neither
for a claim nor against it. It stays in sight and is named, and the rest decides; what rests on a part of the evidence
holds in part at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Outcome, Result
from jepatlas.experiments.social.rules import settled
from jepatlas.workflows.vision.directions import ENOUGH

__all__ = ["ENOUGH", "UNKNOWN", "collapsed_at", "in_part", "marked", "named", "unheard", "weighed"]


UNKNOWN = Estimate(np.nan, -np.inf, np.inf, 0)
"""Of what came to no number at all: it does not count, so that the rest holds in part at most."""


def collapsed_at(runs: Sequence[Result]) -> list[int]:
    """The seeds at which some pair collapsed; of pairs that came to no number, nothing is known."""
    return sorted(
        {run.at["seed"] for run in runs if run.status == "finished" and not run.value("directions") >= ENOUGH}
    )


def weighed(predicted: Sequence[Estimate], counts: Sequence[bool]) -> Outcome:
    """What follows from those numbers that count and should be above 0; `rules` says by which intervals.

    >>> sure, wrong = Estimate(2.0, 1.0, 3.0, 3), Estimate(-2.0, -3.0, -1.0, 3)
    >>> weighed([sure, sure], [True, True]), weighed([sure, wrong], [True, False]), weighed([sure], [False])
    ('holds', 'holds in part', 'undecided')
    """
    return in_part(settled([one for one, counted in zip(predicted, counts, strict=True) if counted]), all(counts))


def in_part(found: Outcome, whole: bool) -> Outcome:
    """What rests on a part of the evidence holds in part at most."""
    return "holds in part" if found == "holds" and not whole else found


def marked(title: str, runs: Sequence[Result]) -> str:
    """A title that says at which seeds agents collapsed."""
    return f"{title} (collapsed at {_seeds(runs)})" if collapsed_at(runs) else title


def named(groups: Mapping[str, Sequence[Result]]) -> str:
    """A sentence that names what collapsed, with a space before it; none where nothing did."""
    flat = [f"{title} ({_seeds(runs)})" for title, runs in groups.items() if collapsed_at(runs)]
    why = f"with latents that vary along less than {ENOUGH:g} directions, and therefore no evidence for or against"
    return f" Collapsed, {why}: {'; '.join(flat)}." if flat else ""


def _seeds(runs: Sequence[Result]) -> str:
    flat = collapsed_at(runs)
    return f"seed{'s' if len(flat) > 1 else ''} {', '.join(map(str, flat))}"


def unheard(verdict: Verdict, counts: bool) -> Verdict:
    """Of agents that collapsed, a number only informs."""
    why = "Some of these agents collapsed: no evidence for or against."
    return verdict if counts else replace(verdict, threshold=None, passed=None, advice=why)
