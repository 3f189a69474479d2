"""Checks of an atlas on held-out states: translation R² and cycle errors.

    cycle error  A→B→C→A:   E‖h − M_CA M_BC M_AB h‖² / E‖h − E h‖²

Through the common frame a cycle closes by construction, except for directions that the narrowest chart on the way
lacks. For maps fitted pair by pair, the cycle error shows where the models disagree.

Verdicts use the worse end of the interval: it must be better than the mean of the latents (an error of 1) and better
than 95% of shuffles (mean and 1.645 standard deviations of 19 of them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from jepatlas.alignment.atlas.chart import ChartLatents
from jepatlas.alignment.atlas.chart_atlas import Atlas
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
    """Charts restricted to states to fit on, and to held-out states: the same states (and groups) in every chart."""
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
    """Mean squared distance between latents and their image under all maps, relative to their variance."""
    mapped = start.latents
    for one in maps:
        mapped = one.apply(mapped)
    return _relative_error(start, mapped, rng, replicates)


def pairwise_maps(charts: Sequence[ChartLatents], fit: Fit = least_squares) -> list[LinearMap]:
    """Maps from each chart to the next and from the last to the first, fitted on shared states."""
    pairs = [shared_states(a, b) for a, b in zip(charts, [*charts[1:], charts[0]], strict=True)]
    for a, b in pairs:
        if len(a.ids) < 2:
            raise InputError(
                f"No map can be fitted between '{a.name}' and '{b.name}': they share {len(a.ids)} states. "
                "Order the charts so that neighbours share states."
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
    """Cycle errors of the atlas' maps and of maps fitted pair by pair, through the charts `fitted` in their order.

    `held` are held-out states of the first chart. The null uses maps fitted to charts with shuffled states.
    """
    names = [chart.name for chart in fitted]
    _check_cycle(names, fitted, held)
    through = [atlas.map(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    direct, way = pairwise_maps(fitted, fit), " → ".join([*names, names[0]])
    null = Null.of(np.nan, np.array([_shuffled_error(fitted, fit, held, rng) for _ in range(ENOUGH)]), "lower")
    judge = partial(Verdict.judge, direction="lower", null=null.mean, threshold=float(np.minimum(1.0, null.limit)))
    return [
        judge(
            "cycle.atlas",
            cycle_error(through, held, rng, replicates=replicates),
            good=f"Cycle error of {way} through the common frame: directions that the narrowest chart lacks.",
            bad=f"{way} through the common frame restores no more than the mean or chance: the narrowest chart "
            "lacks almost all directions of the first. Leave it out, or use another order.",
        ),
        judge(
            "cycle.pairwise",
            cycle_error(direct, held, rng, replicates=replicates),
            good=f"Cycle error of {way} with maps fitted pair by pair: where the models disagree.",
            bad=f"{way} with maps fitted pair by pair restores no more than the mean or chance: the models disagree, "
            "or share too few states. Check that ids name the same states in all charts, and share more.",
        ),
    ]


def translation_verdicts(
    atlas: Atlas, held: Sequence[ChartLatents], rng: np.random.Generator, *, replicates: int = 500
) -> list[Verdict]:
    """Held-out R² of every translation between two charts, compared with shuffled states.

    Pairs of charts that share fewer than 2 held-out states have no verdict.
    """
    verdicts = []
    for a, b in (shared_states(a, b) for a, b in permutations(held, 2)):
        if len(a.ids) < 2:
            continue
        predicted = atlas.translate(a.latents, a.name, b.name)
        error = _relative_error(b, predicted, rng, replicates)
        found = Estimate(1 - error.value, 1 - error.high, 1 - error.low, error.n)
        verdicts.append(_translation_verdict(a.name, b.name, found, r2_null(b.latents, predicted, rng, b.groups)))
    return verdicts


def _translation_verdict(source: str, target: str, found: Estimate, null: Null) -> Verdict:
    return Verdict.judge(
        f"translation.{source}.{target}",
        found,
        direction="higher",
        null=null.mean,
        threshold=float(np.maximum(0.0, null.limit)),
        good=f"Held-out R² of '{target}' predicted from '{source}' through the frame.",
        bad=f"'{source}' does not predict '{target}' significantly better than its mean and chance. Check that ids "
        "name the same states in both, share more states than they have dimensions, and hold out more. An atlas uses "
        "rotations of whitened latents, in which weak directions count as much as strong ones. If 'jepatlas align' "
        "finds a map between the two, they hold the same information, but differ by more than a rotation.",
    )


def _relative_error(truth: ChartLatents, predicted: np.ndarray, rng: np.random.Generator, replicates: int) -> Estimate:
    """E‖h − ĥ‖² / E‖h − E h‖²: one minus R²."""
    centred = truth.latents - truth.latents.mean(0)
    squares = np.stack([np.square(truth.latents - predicted).sum(1), np.square(centred).sum(1)], axis=1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        error, spread = weights @ squares / weights.sum()
        spread -= np.square(weights @ centred / weights.sum()).sum()  # about the mean of the weighted rows
        return {"e": float(error / spread) if spread > 0 else float("nan")}

    # centred: the spread of a draw about its own mean is too small, which makes relative errors too large
    found = bootstrap(statistic, len(predicted), rng, groups=truth.groups, replicates=replicates, centred=True)["e"]
    low, high = np.clip(found.low, 0, found.value), np.maximum(found.high, found.value)
    return replace(found, low=float(low), high=float(high))


def shared_states(a: ChartLatents, b: ChartLatents) -> tuple[ChartLatents, ChartLatents]:
    """Both charts restricted to the states they share, row by row."""
    _, rows_a, rows_b = np.intersect1d(a.ids, b.ids, assume_unique=True, return_indices=True)
    return a.take(rows_a), b.take(rows_b)


def _shuffled_error(fitted: Sequence[ChartLatents], fit: Fit, held: ChartLatents, rng: np.random.Generator) -> float:
    maps = pairwise_maps([_shuffled(chart, rng) for chart in fitted], fit)
    return cycle_error(maps, held, rng, replicates=1).value


def _shuffled(chart: ChartLatents, rng: np.random.Generator) -> ChartLatents:
    return replace(chart, latents=chart.latents[rng.permutation(len(chart.latents))])


def _check_cycle(names: Sequence[str], fitted: Sequence[ChartLatents], held: ChartLatents) -> None:
    if len(names) < 2 or held.name != names[0]:
        raise InputError(
            "A cycle needs at least 2 charts and held-out states of the first one, but the charts are "
            f"{', '.join(names)} and the states are those of {held.name}."
        )
    if (known := np.isin(held.ids, np.concatenate([chart.ids for chart in fitted]))).any():
        raise InputError(
            f"{int(known.sum())} of the {len(known)} held-out states are among those that the maps are "
            "fitted on. Use `split_states`."
        )
