"""Is an atlas right? On states that it was not built from: how well it translates, and whether cycles close.

    cycle error  A→B→C→A:   E‖h − M_CA M_BC M_AB h‖² / E‖h − E h‖²

Through the common frame a cycle closes by construction, but for what the narrowest chart on the way does not see. Maps
fitted pair by pair know nothing of each other: their cycle error shows what the models disagree about.

Both are judged by the worse end of their interval: better than the mean of the latents would be (an error of 1), and
better than 95 of 100 shuffles (mean and 1.645 standard deviations of 19 of them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from jepatlas.alignment.atlas.atlas import Atlas
from jepatlas.alignment.atlas.charts import ChartLatents
from jepatlas.alignment.evidence import r2_null
from jepatlas.alignment.nulls import ENOUGH, Null
from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap

__all__ = [
    "cycle_error",
    "cycle_verdicts",
    "pairwise_maps",
    "shared_states",
    "split_states",
    "translation_verdicts",
]

Fit = Callable[[np.ndarray, np.ndarray], LinearMap]


def split_states(
    charts: Sequence[ChartLatents], rng: np.random.Generator, *, share: float = 0.3
) -> tuple[list[ChartLatents], list[ChartLatents]]:
    """Charts on states to fit on, and on the held-out share of them: the same states (and groups) in every chart."""
    ids = np.concatenate([chart.ids for chart in charts])
    labels = np.concatenate([(chart.ids if chart.groups is None else chart.groups).astype(str) for chart in charts])
    states, first = np.unique(ids, return_index=True)
    held = states[hold_out(len(states), rng, groups=labels[first], share=share).score]
    inside = [np.isin(chart.ids, held) for chart in charts]
    fit = [chart.take(~rows) for chart, rows in zip(charts, inside, strict=True)]
    return fit, [chart.take(rows) for chart, rows in zip(charts, inside, strict=True)]


def cycle_error(
    maps: Sequence[LinearMap], start: ChartLatents, rng: np.random.Generator, *, replicates: int = 500
) -> Estimate:
    """Mean square distance after a way through all maps and back, as a share of the latents' variance."""
    arrived = start.latents
    for one in maps:
        arrived = one.apply(arrived)
    return _relative_error(start, arrived, rng, replicates)


def pairwise_maps(charts: Sequence[ChartLatents], fit: Fit = least_squares) -> list[LinearMap]:
    """Maps from each chart to the next and from the last to the first, each fitted on the states that the two share."""
    pairs = [shared_states(a, b) for a, b in zip(charts, [*charts[1:], charts[0]], strict=True)]
    for a, b in pairs:
        if len(a.ids) < 2:
            raise InputError(
                f"No map can be fitted between '{a.name}' and '{b.name}': they share {len(a.ids)} states. "
                "Choose a way through charts that share states."
            )
    return [fit(a.latents, b.latents) for a, b in pairs]


def cycle_verdicts(
    atlas: Atlas,
    fitted: Sequence[ChartLatents],
    held: ChartLatents,
    rng: np.random.Generator,
    *,
    fit: Fit = least_squares,
    replicates: int = 500,
) -> list[Verdict]:
    """The cycle error of the atlas' maps, and of maps `fit` pair by pair, through the charts `fitted` in their order.

    `held` are held-out states of the first of them. The null is that of maps between single states dealt at random.
    """
    names = [chart.name for chart in fitted]
    _check_cycle(names, fitted, held)
    through = [atlas.map(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    direct, way = pairwise_maps(fitted, fit), " → ".join([*names, names[0]])
    null = Null.of(np.nan, np.array([_dealt_error(fitted, fit, held, rng) for _ in range(ENOUGH)]), "lower")
    judge = partial(Verdict.judge, direction="lower", null=null.mean, threshold=float(np.minimum(1.0, null.limit)))
    return [
        judge(
            "cycle.atlas",
            cycle_error(through, held, rng, replicates=replicates),
            good=f"{way} through the common frame: what the narrowest chart on the way does not see.",
            bad=f"{way} through the common frame brings back no more than the mean, or than chance: the narrowest "
            "chart on the way sees next to nothing of the first. Leave it out, or go another way.",
        ),
        judge(
            "cycle.pairwise",
            cycle_error(direct, held, rng, replicates=replicates),
            good=f"{way} by maps fitted pair by pair: what the models disagree about.",
            bad=f"{way} by maps fitted pair by pair brings back no more than the mean, or than chance: the models do "
            "not agree, or share too few states to fit maps on. Check that ids name the same states in all, "
            "and share more.",
        ),
    ]


def translation_verdicts(
    atlas: Atlas, held: Sequence[ChartLatents], rng: np.random.Generator, *, replicates: int = 500
) -> list[Verdict]:
    """Held-out R² of every chart's latents translated from every other's, beside that of states dealt at random.

    Charts that share fewer than 2 of the held-out states cannot be compared, and have no verdict.
    """
    verdicts = []
    for a, b in (shared_states(a, b) for a, b in permutations(held, 2)):
        if len(a.ids) < 2:
            continue
        told = atlas.translate(a.latents, a.name, b.name)
        missed = _relative_error(b, told, rng, replicates)
        found = Estimate(1 - missed.value, 1 - missed.high, 1 - missed.low, missed.n)
        verdicts.append(_translation_verdict(a.name, b.name, found, r2_null(b.latents, told, rng, b.groups)))
    return verdicts


def _translation_verdict(source: str, target: str, found: Estimate, null: Null) -> Verdict:
    return Verdict.judge(
        f"translation.{source}.{target}",
        found,
        direction="higher",
        null=null.mean,
        threshold=float(np.maximum(0.0, null.limit)),
        good=f"R² of '{target}' from '{source}' through the frame, held out.",
        bad=f"'{source}' does not tell '{target}' beyond doubt better than its mean would, or than chance. Check that "
        "ids name the same states in both, share more states than they have dimensions, and judge by more held-out "
        "ones. An atlas turns whitened latents, in which faint directions weigh as much as strong ones: where "
        "'jepatlas align' has a map between the two, they see the same things, but not by a rotation.",
    )


def _relative_error(truth: ChartLatents, told: np.ndarray, rng: np.random.Generator, replicates: int) -> Estimate:
    """E‖h − ĥ‖² / E‖h − E h‖²: one minus R²."""
    centred = truth.latents - truth.latents.mean(0)
    squares = np.stack([np.square(truth.latents - told).sum(1), np.square(centred).sum(1)], axis=1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        missed, spread = weights @ squares / weights.sum()
        spread -= np.square(weights @ centred / weights.sum()).sum()  # the mean is that of the weighted rows
        return {"e": float(missed / spread) if spread > 0 else float("nan")}

    # centred: the spread of a draw, about its own mean, is too small by what the mean varies, which makes errors large
    found = bootstrap(statistic, len(told), rng, groups=truth.groups, replicates=replicates, centred=True)["e"]
    low, high = np.clip(found.low, 0, found.value), np.maximum(found.high, found.value)
    return replace(found, low=float(low), high=float(high))


def shared_states(a: ChartLatents, b: ChartLatents) -> tuple[ChartLatents, ChartLatents]:
    """Both on the states that they share, row by row."""
    _, rows_a, rows_b = np.intersect1d(a.ids, b.ids, assume_unique=True, return_indices=True)
    return a.take(rows_a), b.take(rows_b)


def _dealt_error(fitted: Sequence[ChartLatents], fit: Fit, held: ChartLatents, rng: np.random.Generator) -> float:
    maps = pairwise_maps([_dealt(chart, rng) for chart in fitted], fit)
    return cycle_error(maps, held, rng, replicates=1).value


def _dealt(chart: ChartLatents, rng: np.random.Generator) -> ChartLatents:
    return replace(chart, latents=chart.latents[rng.permutation(len(chart.latents))])


def _check_cycle(names: Sequence[str], fitted: Sequence[ChartLatents], held: ChartLatents) -> None:
    if len(names) < 2 or held.name != names[0]:
        raise InputError(
            "A cycle begins and ends with held-out states of its first chart, through at least one other, but it goes "
            f"through {', '.join(names)} and the states are those of {held.name}."
        )
    if (known := np.isin(held.ids, np.concatenate([chart.ids for chart in fitted]))).any():
        raise InputError(
            f"{int(known.sum())} of the {len(known)} held-out states are among those that the maps are "
            "fitted on. Use `split_states`."
        )
