"""The map between two agents, its controls, and the measures of both.

Maps are ridge maps between standardised latents, as published. They are fitted on states that the agents were trained
on and scored on held-out objects or time blocks:

    R²            of the map, between standardised latents (`r2`) and between raw latents (`r2_raw`)
    r2_rotation   of the best similarity between raw latents: what an isometry would keep
    DSC, NOS@k    between the first agent's latents and the (truncated) inverse image of the second's
    ..._there     between the image of the first agent's latents and the second's, without an inverse
    κ             of least squares between the principal directions with 99% of the variance on either side

Intervals come from half samples of the groups and p from permuting whole groups; neither fits the map again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.alignment import HeldOut, PairedLatents
from jepatlas.alignment.maps import LeastSquaresMap, ProcrustesMap, RidgeMap
from jepatlas.alignment.similarity import NEIGHBOURS, cka_debiased, dsc, neighbour_overlap, nos
from jepatlas.core.linear import Split, r2
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Direction, Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.social.agent_pairs import (
    COMPARED,
    CONTROLS,
    groups_of_pair,
    measure_key,
    scored_rows,
    sides_of,
    split_of,
)

__all__ = ["EFFORT", "Effort", "Translation", "leading_directions", "measure_pair", "positive_scale", "translate"]

VARIANCE_SHARE = 0.99
RANGES = {"r2": (-np.inf, 1.0), "r2_raw": (-np.inf, 1.0)}
RANGES |= {"dsc": (-1.0, 1.0), "dsc_there": (-1.0, 1.0)}
RANGES |= {"nos_10": (0.0, 1.0), "nos_10_there": (0.0, 1.0)}
"""Possible values of the measures."""
DIRECTIONS: dict[str, Direction] = {name: "lower" if name.startswith("nos") else "higher" for name in RANGES}


@dataclass(frozen=True)
class Effort:
    """How much is computed for the evidence on one pair."""

    permutations: int
    replicates: int
    rows: int  # maximum number of held-out states that are scored


EFFORT: dict[Scale, Effort] = {"tiny": Effort(9, 8, 60), "small": Effort(199, 40, 300), "paper": Effort(199, 100, 1000)}


@dataclass(frozen=True)
class Translation:
    """A fitted ridge map, and both sides of it for all rows; standardised unless named `raw`."""

    fitted: RidgeMap
    source: np.ndarray  # the first side
    back: np.ndarray  # the inverse image of the second side
    target: np.ndarray  # the second side
    predicted: np.ndarray  # the image of the first side
    raw_target: np.ndarray
    raw_predicted: np.ndarray  # by a map of its own, between raw latents
    rotated: np.ndarray | None
    """Prediction of the best similarity between raw latents; None if the widths differ."""

    def scores(self, rows: np.ndarray, partners: np.ndarray) -> dict[str, float]:
        """Measures between rows of the first side and rows of the second."""
        nos_there = np.nan
        if len(rows) > 10:
            nos_there = nos(self.predicted[rows], self.target[partners], 10)
        return {
            "r2": r2(self.target[partners], self.predicted[rows]),
            "r2_raw": r2(self.raw_target[partners], self.raw_predicted[rows]),
            "dsc": dsc(self.source[rows], self.back[partners]),
            "dsc_there": dsc(self.predicted[rows], self.target[partners]),
            "nos_10": self.neighbour_scores(rows, partners, (10,))["nos_10"],
            "nos_10_there": nos_there,
        }

    def neighbour_scores(
        self, rows: np.ndarray, partners: np.ndarray, ks: tuple[int, ...] = NEIGHBOURS
    ) -> dict[str, float]:
        """NOS@k; NaN where there are no more than k rows."""
        possible = [k for k in ks if k < len(rows)]
        shares = neighbour_overlap(self.source[rows], self.back[partners], possible) if possible else {}
        return {f"nos_{k}": float(1 - shares[k].mean()) if k in shares else np.nan for k in ks}


def translate(pair: PairedLatents, a: np.ndarray, b: np.ndarray) -> Translation:
    """Fit on the states that are not held out."""
    fit = split_of(pair).fit
    groups = groups_of_pair(pair)[fit]
    fitted = RidgeMap(standardise=True, condition_limit=CONDITION_LIMIT).fit(a[fit], b[fit], groups=groups)
    plain = RidgeMap(standardise=False, condition_limit=CONDITION_LIMIT).fit(a[fit], b[fit], groups=groups)
    x_scale = positive_scale(fitted.map_.x_scale)
    y_scale = positive_scale(fitted.map_.y_scale)
    rotated = None
    if a.shape[1] == b.shape[1]:
        rotated = ProcrustesMap(scaled=True).fit(a[fit], b[fit]).transform(a)
    return Translation(
        fitted=fitted,
        source=a / x_scale,
        back=fitted.inverse_transform(b) / x_scale,
        target=b / y_scale,
        predicted=fitted.transform(a) / y_scale,
        raw_target=b,
        raw_predicted=plain.transform(a),
        rotated=rotated,
    )


def positive_scale(scale: np.ndarray) -> np.ndarray:
    """Standard deviations to divide by; 1 for constant columns."""
    return np.where(scale > 0, scale, 1.0)


def measure_pair(pair: PairedLatents, effort: Effort, seed: int = 0) -> dict[str, Estimate]:
    """All measures of a pair of agents and its controls: `r2`, `r2_pca`, ... and margins over the best control.

    The margins are `beyond` (R²), `beyond_raw`, `beyond_dsc`, `beyond_nos_10`, `beyond_nos_10_there` (positive if
    neighbours are kept better) and `beyond_pixels`.

    Standardised, the last principal component of images weighs as much as the first; raw, the widest
    direction of latents outweighs all others. Neither is fair to both sides, so agents must exceed the controls in
    both.
    """
    rows = scored_rows(pair, effort.rows)
    split = Split(split_of(pair).fit, rows)
    groups = groups_of_pair(pair)
    translations = {name: translate(pair, *sides) for name, sides in sides_of(pair).items()}
    agents = translations["agents"]
    everything = HeldOut(
        n=len(pair),
        split=split,
        fit=lambda fit_rows, partners: translations,
        score=lambda models, rows, partners: _score_all(models, rows),
        refit=False,
        groups=groups,
    )
    trained = replace(
        everything,
        fit=lambda fit_rows, partners: agents,
        score=lambda model, rows, partners: model.scores(rows, partners),
    )
    rng = numpy_generator(seed, "evidence")
    ranges = {measure_key(key, name): ends for name in translations for key, ends in RANGES.items()}
    found = everything.intervals(rng, replicates=effort.replicates, ranges=ranges)
    nulls = trained.null(rng, directions=DIRECTIONS, permutations=effort.permutations)
    single = {f"p_{name}": null.p for name, null in nulls.items()} | {"chance": nulls["r2"].mean}
    single |= _map_properties(agents, pair, rows)
    for name in COMPARED:
        for key, value in translations[name].neighbour_scores(rows, rows).items():
            single[f"{key}_of_{name}"] = value
    held = split_of(pair).score
    single["cka"] = cka_debiased(pair.a.h[held], pair.b.h[held])
    return found | point_estimates(single, len(rows))


def _score_all(translations: Mapping[str, Translation], rows: np.ndarray) -> dict[str, float]:
    """Measures of the agents and all controls, and the margins of the agents."""
    found = {}
    for name, translation in translations.items():
        for measure, value in translation.scores(rows, rows).items():
            found[measure_key(measure, name)] = value
    for margin, measure in (("beyond", "r2"), ("beyond_raw", "r2_raw"), ("beyond_dsc", "dsc")):
        found[margin] = found[measure] - max(found[f"{measure}_{control}"] for control in CONTROLS)
    for measure in ("nos_10", "nos_10_there"):
        best = min(found[f"{measure}_{control}"] for control in CONTROLS)
        found[f"beyond_{measure}"] = best - found[measure]
    found["beyond_pixels"] = found["r2"] - found["r2_pixels"]
    return found


def _map_properties(agents: Translation, pair: PairedLatents, rows: np.ndarray) -> dict[str, float]:
    conditioning = agents.fitted.conditioning_
    fit = split_of(pair).fit
    a, b = (leading_directions(side.h, fit)[fit] for side in (pair.a, pair.b))
    orthogonality = conditioning.orthogonality
    rotation = np.nan if agents.rotated is None else r2(agents.raw_target[rows], agents.rotated[rows])
    return {
        "kappa": float(LeastSquaresMap().fit(a, b).conditioning_.condition),
        "carried": float(min(a.shape[1], b.shape[1])),
        "effective_rank": float(conditioning.effective_rank),
        "orthogonality": np.nan if orthogonality is None else float(orthogonality),
        "r2_rotation": rotation,
        "mse": float(np.square(agents.target[rows] - agents.predicted[rows]).mean()),
    }


def leading_directions(h: np.ndarray, fit: np.ndarray, share: float = VARIANCE_SHARE) -> np.ndarray:
    """Standardised latents along the principal directions that hold a share of their variance.

    Scales and directions are those of the rows `fit`. The last normalisation of a ViT leaves one direction without
    variance, and short training leaves many with almost none: the condition number of a map between all of them would
    be rounding."""
    h = h.astype(np.float64) - h[fit].mean(0, dtype=np.float64)
    h /= positive_scale(h[fit].std(0))
    _, values, directions = np.linalg.svd(h[fit], full_matrices=False)
    cumulative = np.cumsum(np.square(values)) / max(np.square(values).sum(), np.finfo(float).tiny)
    return h @ directions[: int(np.searchsorted(cumulative, share)) + 1].T
