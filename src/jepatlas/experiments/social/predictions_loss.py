"""A lower prediction loss, better alignment? Over checkpoints of one training, as the preprint proposes.

    ρ = Spearman's correlation, over checkpoints, of the held-out loss with a measure of the pair's alignment

R² may rise because what the second agent sees becomes simpler to tell from anything. So ρ is also taken of R² beyond
what the first agent did not learn: R² to the same second agent from PCA of the first view, or from the first network
before training, whichever is higher. (Controls on both sides do not change as agents learn, nor ρ beyond them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are asked for

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, extremes, mean_and_interval, mean_and_range, select
from jepatlas.experiments.social.agents import agent
from jepatlas.experiments.social.charts import Met, charts_of
from jepatlas.experiments.social.collapse import ENOUGH, weighed
from jepatlas.experiments.social.measures import translate
from jepatlas.experiments.social.meetings import paired
from jepatlas.experiments.social.predictions_outcome import Prediction, verdicts
from jepatlas.experiments.social.predictions_runs import run_watched, step_name
from jepatlas.experiments.social.predictions_shown import loss_figure, loss_table
from jepatlas.experiments.social.rules import MEASURES, WAYS, both_ways
from jepatlas.recipes import VisionRecipe

__all__ = ["WATCHES", "correlation", "judge", "meet_watched", "steps", "trials", "watched"]

TAKEN = {**MEASURES, "beyond": "R² beyond what needs no learning"}
TAKEN_BY = {**WAYS, "beyond": ("beyond",)}


@dataclass(frozen=True)
class Watch:
    steps: int
    looks: int
    """Each after twice the steps of the one before."""

    @property
    def every(self) -> int:
        return self.steps // 2 ** (self.looks - 1)

    @property
    def at(self) -> list[int]:
        """
        >>> Watch(640, 6).at
        [20, 40, 80, 160, 320, 640]
        """
        return [self.every * 2**look for look in range(self.looks)]


WATCHES: dict[Scale, Watch] = {"tiny": Watch(4, 2), "small": Watch(640, 6), "paper": Watch(3360, 6)}
"""`small` is trained longer than other agents, since longer training is what should help."""


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    return [_watched(scale, agent(scale, scene, view, seed)) for seed in seeds for view in range(2)]


def _watched(scale: Scale, usual: Trial) -> Trial:
    watch, recipe = WATCHES[scale], from_plain(VisionRecipe, usual.settings["recipe"])
    training = replace(recipe.training, steps=watch.steps, checkpoint_every=watch.every, keep=2**watch.looks)
    settings = usual.settings | {"recipe": to_plain(replace(recipe, training=training)), "looks": watch.at}
    return Trial({**usual.at, "objective": "ijepa-watched"}, run_watched, settings)


def steps(scale: Scale) -> list[int]:
    """When agents are looked at, before the first step and after."""
    return [0, *WATCHES[scale].at]


def meet_watched(results: Sequence[Result], scale: Scale, rows: int) -> list[Result]:
    """Both agents of each seed, at every look."""
    looks, sides = steps(scale), [select(results, view=view) for view in range(2)]
    return [
        paired(a, b, lambda met, a=a, b=b: _estimates(watched(met, looks, rows), a, b, looks))
        for a in sides[0]
        for b in sides[1]
        if a.at["seed"] == b.at["seed"]
    ]


def watched(met: Met, looks: Sequence[int], rows: int) -> dict[str, float]:
    """Alignment at every look, on the same held-out states."""
    still, found = charts_of(met), dict[str, float]()
    for step in looks:
        a, b = (side[step_name("h", step)] for side in (met.a, met.b))
        found_map = translate(met, a, b, rows)
        every = np.arange(len(found_map.target))
        unlearned = [translate(met, still[name][0], b, rows) for name in ("untrained", "pca")]
        scores = found_map.scores(every, every)
        scores["beyond"] = scores["r2"] - max(r2(one.target, one.predicted) for one in unlearned)
        found |= {step_name(way, step): scores[way] for ways in TAKEN_BY.values() for way in ways}
    return found


def _estimates(found: dict[str, float], a: Result, b: Result, looks: Sequence[int]) -> dict[str, Estimate]:
    """With what was measured of both agents: mean losses, and the directions of the one that has fewer."""
    for step in looks:
        for name, both in (("loss", np.mean), ("untold", np.mean), ("directions", np.min)):
            key = step_name(name, step)
            found[key] = float(both([a.value(key), b.value(key)]))
    for name in (way for ways in TAKEN_BY.values() for way in ways):
        course = [found[step_name(name, step)] for step in looks]
        for cause in ("loss", "untold"):
            found[f"rho_{cause}_{name}"] = correlation([found[step_name(cause, step)] for step in looks], course)
    found["fewest"] = min(found[step_name("directions", step)] for step in looks)
    return {name: Estimate(value, value, value, len(looks)) for name, value in found.items()}


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's; undefined where one of them does not change.

    >>> correlation([3, 2, 1], [0.1, 0.2, 0.9]), correlation([1, 1, 1], [1, 2, 3])
    (-1.0, nan)
    """
    if not np.isfinite([x, y]).all() or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    found: Any = scipy.stats.spearmanr(x, y)
    return float(found.statistic)


def judge(pairs: Sequence[Result], looks: Sequence[int]) -> Prediction:
    """ρ must surely have the predicted sign for R², DSC, NOS@10 and R² beyond what needs no learning; for distances and
    neighbours both through the inverse of the map and through the map."""
    rho = {
        way: _bounded(mean_and_interval(pairs, f"rho_loss_{way}", among=len(TAKEN)))
        for ways in TAKEN_BY.values()
        for way in ways
    }
    found = {f"rho_{name}": both_ways([_turned(rho[way], way) for way in ways]) for name, ways in TAKEN_BY.items()}
    alive = all(pair.value("fewest") >= ENOUGH for pair in pairs if pair.status == "finished")
    counts = [alive] * len(found)
    each = "; ".join(
        f"{title} {' and, with no inverse, '.join(cell(rho[way], 2) for way in TAKEN_BY[name])}"
        for name, title in TAKEN.items()
    )
    return Prediction(
        "a lower loss aligns better",
        weighed(list(found.values()), counts),
        f"Over {len(looks)} checkpoints, Spearman's ρ of the held-out loss with {each}; with R² of the loss as a share "
        f"of its targets' variance {extremes(mean_and_range(pairs, 'rho_untold_r2'), 2)}. Latents vary along at least "
        f"{extremes(mean_and_range(pairs, 'fewest'), 1)} directions{'' if alive else ', so that some collapsed'}.",
        verdicts(
            found,
            "Alignment gets better as the loss falls.",
            "Alignment does not surely improve with the loss.",
            counts,
        ),
        (loss_figure(pairs, looks, TAKEN),) if found["rho_r2"].n else (),
        (loss_table(pairs, looks, TAKEN),),
    )


def _bounded(found: Estimate) -> Estimate:
    """Student's interval knows of no ends, a correlation has them."""
    return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))


def _turned(found: Estimate, name: str) -> Estimate:
    """Above 0 where it is as predicted: ρ is negative for what should rise as the loss falls."""
    return found if name.startswith("nos") else Estimate(-found.value, -found.high, -found.low, found.n)
