"""Are maps between agents steadier where the objective asks for view-invariant prediction?

    unrest = E‖W₁h − W₂h‖² / E‖Wh − mean‖²     over held-out states; W₁, W₂ fitted on disjoint parts of the objects

Parts are halves or quarters. The unit is what the map of all pairs tells: in units of the target, which are shown
beside it, a map that tells nothing would be steadiest. Between seeds maps cannot be compared, since latents are others;
there it is the variance of R², pooled over objectives, with Snedecor's interval of the ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are loaded when they are asked for

from jepatlas.alignment.maps import RidgeMap
from jepatlas.core.linear import subsample
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range
from jepatlas.experiments.social.agents import agents
from jepatlas.experiments.social.charts import Met
from jepatlas.experiments.social.collapse import collapsed_at, in_part
from jepatlas.experiments.social.measures import translate
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.predictions_outcome import Prediction, verdicts
from jepatlas.experiments.social.predictions_shown import stability_figure, stability_table
from jepatlas.experiments.social.rules import gaps, settled

__all__ = ["PREDICTIVE", "judge", "meet_objectives", "objectives", "ratio_of_variances", "trials", "unrest"]

PREDICTIVE = ("ijepa", "lejepa")
_OTHERS: dict[Scale, tuple[str, ...]] = {
    "tiny": ("mae",),
    "small": ("mae", "autoencoder", "simclr"),
    "paper": ("mae", "autoencoder", "simclr", "vicreg"),
}
PARTS = {2: "halves", 4: "quarters"}
DRAWS = 5


def objectives(scale: Scale) -> tuple[str, ...]:
    return (*(PREDICTIVE[:1] if scale == "tiny" else PREDICTIVE), *_OTHERS[scale])


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    """Agents of `social-paradigms`, as far as it has them."""
    return [trial for name in objectives(scale) for trial in agents(scale, scene, seeds, name)]


def meet_objectives(results: Sequence[Result], scale: Scale, rows: int) -> list[Result]:
    chosen = [result for result in results if result.at["objective"] in objectives(scale)]
    return meetings(chosen, lambda met: unrest(met, rows))


def unrest(met: Met, rows: int) -> dict[str, Estimate]:
    """How far maps from other pairs tell other things of the same held-out states; and R² of the map from all pairs."""
    a, b, fit = met.a["h"], met.b["h"], met.split.fit
    whole = translate(met, a, b, rows)
    every = np.arange(len(whole.target))
    scale = np.where(whole.fitted.map_.y_scale > 0, whole.fitted.map_.y_scale, 1.0)
    score = subsample(met.split.score, rows)
    names, objects = np.unique(met.groups[fit], return_inverse=True)
    found = {name: value for name, value in whole.scores(every, every).items() if name in ("r2", "dsc", "nos_10")}
    for parts in PARTS:
        apart = []
        for draw in range(DRAWS if len(names) >= 2 * parts else 0):  # a penalty is chosen by objects held out
            part_of = numpy_generator(draw, f"{parts} parts").permutation(len(names))[objects] % parts
            chosen = [fit[part_of == part] for part in range(parts)]
            maps = [RidgeMap(standardise=True).fit(a[one], b[one], groups=met.groups[one]) for one in chosen]
            predictions = np.stack([one.transform(a[score]) / scale for one in maps])
            apart.append(2 * predictions.var(0, ddof=1).sum())  # the mean over all pairs of maps
        moved = float(np.mean(apart)) if apart else np.nan
        share = moved / _around(whole.predicted)
        found |= {
            f"unrest_{parts}": share,
            f"log_unrest_{parts}": float(np.log(share)) if share > 0 else np.nan,
            f"moved_{parts}": moved / _around(whole.target),
        }
    return {name: Estimate(value, value, value, len(every)) for name, value in found.items()}


def _around(values: np.ndarray) -> float:
    total = float(np.square(values - values.mean(0)).sum())
    return total if total > 0 else np.nan


def ratio_of_variances(above: Sequence[np.ndarray], below: Sequence[np.ndarray], among: int = 1) -> Estimate:
    """The logarithm of one pooled variance over another, with its 95% interval where values are normal; one `among`
    several."""
    sides = [[values for values in side if len(values) > 1] for side in (above, below)]
    free = [sum(len(values) - 1 for values in side) for side in sides]
    pooled = [
        sum(values.var(ddof=1) * (len(values) - 1) for values in side) / max(count, 1)
        for side, count in zip(sides, free, strict=True)
    ]
    if min(free) < 1 or min(pooled) <= 0:
        return Estimate(np.nan, -np.inf, np.inf, min(free))
    ratio = float(pooled[0] / pooled[1])
    low, high = (ratio / scipy.stats.f.ppf(level, *free) for level in (1 - 0.025 / among, 0.025 / among))
    return Estimate(float(np.log(ratio)), float(np.log(low)), float(np.log(high)), sum(free))


def judge(pairs: Sequence[Result]) -> Prediction:
    """Maps of predictive objectives must be surely steadier: from halves, from quarters, and R² over seeds. Objectives
    of which a pair collapsed are not compared."""
    kinds = {name: runs for (name,), runs in grouped(pairs, "objective").items() if mean_and_range(runs, "r2").n}
    flat = [name for name, runs in kinds.items() if collapsed_at(runs)]
    ours, others = (
        {name: runs for name, runs in kinds.items() if name not in flat and (name in PREDICTIVE) is mine}
        for mine in (True, False)
    )
    numbers = len(PARTS) + 1
    steadier = {
        title: mean_interval(gaps(_all(others), _all(ours), f"log_unrest_{parts}"), comparisons=numbers)
        for parts, title in PARTS.items()
    }
    sides = ([_values(runs, "r2") for runs in side.values()] for side in (others, ours))
    spread = ratio_of_variances(*sides, among=numbers)
    found = {f"steadier_{name}": one for name, one in steadier.items()} | {"steadier_seeds": spread}
    return Prediction(
        "view-invariant prediction has steadier maps",
        in_part(settled(list(found.values())), whole=not flat),
        f"Unrest of maps of {', '.join(others) or 'no other'} over that of {', '.join(ours) or 'none'}: "
        + ", ".join(f"{_times(one)} from {name}" for name, one in steadier.items())
        + f"; the variance of their R² over seeds {_times(spread)}."
        + (f" Collapsed, and not compared: {', '.join(flat)}." if flat else ""),
        verdicts(
            found,
            "Maps of predictive objectives are steadier.",
            "Maps of predictive objectives are not surely steadier.",
        ),
        (stability_figure(kinds, PARTS),),
        (stability_table(kinds, pairs, PARTS),),
    )


def _times(log: Estimate) -> str:
    value, low, high = np.exp([log.value, log.low, log.high]).tolist()
    return f"{cell(Estimate(value, low, high, log.n), 2)} ×"


def _all(kinds: Mapping[str, Sequence[Result]]) -> list[Result]:
    return [run for runs in kinds.values() for run in runs]


def _values(runs: Sequence[Result], name: str) -> np.ndarray:
    values = np.array([run.value(name) for run in runs])
    return values[np.isfinite(values)]
