"""Pairs that do not fit the others: verdicts on robust maps, and a robust fit as a check of other maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from jepatlas.alignment import Evidence, FittedMap, PairedLatents, RidgeMap, RobustMap
from jepatlas.core.errors import InputError
from jepatlas.core.linear import r2, subsample
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.workflows.align.align_study import Study
from jepatlas.workflows.align.refitted_nulls import Fit

__all__ = [
    "Finding",
    "distrusted",
    "distrusted_note",
    "distrusted_verdict",
    "r2_interval",
    "robust_disagreement",
    "trusted_r2",
]

MISMATCHED = 0.05
"""Share of distrusted pairs above which they are more than the tail of the noise."""
MOST_NAMED = 8
COMPONENTS = 32
"""Principal components of both sides, in which the check is fitted: as cheap for wide latents as for narrow ones."""
MOST_PAIRS = 5000
DIFFERENT = 0.1
"""Difference of R² from which the check disagrees."""
FOLLOW = 0.25
"""Median slope of the target on its prediction from which pairs with large residuals are not mismatches: they follow
the map, with more noise or along a curve, such as the tails of a warp."""
FEWEST_FOLLOWERS = 5
FEWEST_TRUSTED = 8


@dataclass(frozen=True)
class Finding:
    """What a check found: a sentence for the summary, or nothing; and verdicts."""

    text: str = ""
    verdicts: tuple[Verdict, ...] = ()


# --- robust maps ---


def distrusted(fitted: FittedMap, pairs: PairedLatents, rows: np.ndarray) -> np.ndarray | None:
    """Ids (or rows of a) of the pairs that a robust fit distrusts; None for other fits."""
    if not isinstance(fitted, RobustMap):
        return None
    which = rows[fitted.distrusted_]
    return which if pairs.a.ids is None else pairs.a.ids[which]


def distrusted_note(distrusted: np.ndarray, pairs: int) -> str:
    note = "All held-out pairs are scored, including mismatched ones."
    share = len(distrusted) / pairs
    return f"{share:.0%} of the fitted pairs are distrusted. {note}" if share > MISMATCHED else note


def distrusted_verdict(distrusted: np.ndarray, pairs: int) -> Verdict:
    share = len(distrusted) / pairs
    named = ", ".join(map(str, distrusted[:MOST_NAMED])) + (", …" if len(distrusted) > MOST_NAMED else "")
    return Verdict.judge(
        "distrusted",
        Estimate.exact(share, pairs),
        direction="lower",
        threshold=MISMATCHED,
        good="Share of pairs that do not fit the others and have little weight. So few can be chance.",
        bad=f"Share of pairs that do not fit the others and have little weight. Check {named} (all are in the array "
        "'distrusted' of the record).",
    )


def trusted_r2(fitted: FittedMap, pairs: PairedLatents, study: Study, given: Evidence) -> list[Verdict]:
    """R² on the held-out pairs that are trusted by a second robust fit, which is independent of the scored map.

    If no map predicts anything, all pairs are trusted; therefore the null is that of all pairs.
    """
    held = np.sort(study.split.score)
    a, b = pairs.a.h[held], pairs.b.h[held]
    groups = None if study.groups is None else study.groups[held]
    second = clone(fitted)
    assert isinstance(second, RobustMap)
    kept = np.setdiff1d(np.arange(len(held)), second.fit(a, b, groups).distrusted_)
    if groups is not None and len(np.unique(groups[kept])) < 2:
        return []
    truth, predicted = b[kept], fitted.map_.apply(a[kept])
    estimate = r2_interval(truth, predicted, study, "trusted", None if groups is None else groups[kept])
    advice = (
        f"R² on the {len(kept)} of {len(held)} held-out pairs that a separate robust fit trusts; 'r2' is that of all "
        "pairs. It is optimistic, because these pairs were selected for their fit."
    )
    return [Verdict.judge("r2_trusted", estimate, direction="higher", null=given.null.mean, good=advice)]


# --- a check of other maps ---


def robust_disagreement(pairs: PairedLatents, fit: Fit, study: Study, evidence: Evidence) -> Finding:
    """Whether a few pairs, or mismatched ones, decide the held-out R²: if so, its value on the other pairs.

    A robust fit between principal components names the pairs that it distrusts. Without them the map is fitted again,
    and scored on the held-out rows.
    """
    rows = np.union1d(subsample(study.split.fit, MOST_PAIRS), study.scored)
    a, b = pairs.a.h[rows], pairs.b.h[rows]
    groups = None if study.groups is None else study.groups[rows]
    fitted, scored = (np.isin(rows, part) for part in (study.split.fit, study.scored))
    trusted = _trusted(a, b, groups, fitted=fitted, scored=scored, seed=study.seed)
    if trusted is None:
        return Finding()
    fit_groups, held_groups = (None if groups is None else groups[part & trusted] for part in (fitted, scored))
    try:
        map_ = fit(a[fitted & trusted], b[fitted & trusted], fit_groups).map_
        predicted = map_.apply(a)
        estimate = r2_interval(b[scored & trusted], predicted[scored & trusted], study, "trusted", held_groups)
    except InputError:  # too few groups are trusted
        return Finding()
    middle = b[trusted].mean(0)
    if not estimate.low > max(evidence.estimate.value + DIFFERENT, 0) or _follow(
        predicted[~trusted] - middle, b[~trusted] - middle
    ):
        return Finding()
    which = rows[~trusted] if pairs.ids is None else pairs.ids[rows[~trusted]]
    named = ", ".join(map(str, which[:MOST_NAMED])) + (", …" if len(which) > MOST_NAMED else "")
    share = f"{len(which)} of {len(rows)} pairs ({len(which) / len(rows):.1%})"
    return Finding(
        f"Warning: {share} {'does' if len(which) == 1 else 'do'} not fit the others "
        f"({'rows' if pairs.ids is None else 'ids'} {named}). Without them the held-out R² is {estimate.value:.3f} "
        f"[{estimate.low:.3f}, {estimate.high:.3f}]. Check how these are paired, or use --map robust.",
        (
            Verdict.judge(
                "r2_trusted",
                estimate,
                direction="higher",
                null=evidence.null.mean,
                good=f"R² without the {share} that a robust fit distrusts. It is optimistic, because these pairs were "
                "selected for their fit.",
            ),
        ),
    )


def _trusted(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray | None, *, fitted: np.ndarray, scored: np.ndarray, seed: int
) -> np.ndarray | None:
    """Mask of the pairs that a robust fit between principal components trusts; None if the others make no difference.

    If no map predicts most pairs, all are trusted.
    """
    reduced = [_components(side, numpy_generator(seed, "components")) for side in (a, b)]
    if not all(side.shape[1] for side in reduced):
        return None
    distrusted = RobustMap(RidgeMap(standardise=True)).fit(*reduced, groups).distrusted_
    trusted = np.ones(len(a), bool)
    trusted[distrusted] = False
    if not len(distrusted) or min((fitted & trusted).sum(), (scored & trusted).sum()) < FEWEST_TRUSTED:
        return None
    values = [_reduced_r2(*reduced, fitted & keep, scored & keep) for keep in (trusted, np.ones(len(a), bool))]
    return trusted if values[0] > values[1] + DIFFERENT / 2 else None


def _components(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Leading principal components of columns in units of their median deviations, by subspace iteration."""
    centred = rows - np.median(rows, axis=0)
    unit = np.median(np.abs(centred), axis=0)
    unit = np.where(unit > 0, unit, centred.std(0))
    centred = centred[:, unit > 0] / unit[unit > 0]
    width = min(COMPONENTS, *centred.shape)
    if centred.shape[1] <= COMPONENTS:
        return centred.astype(np.float64)
    basis = rng.standard_normal((centred.shape[1], width))
    for _ in range(3):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    return (centred @ basis).astype(np.float64)


def _reduced_r2(a: np.ndarray, b: np.ndarray, fitted: np.ndarray, scored: np.ndarray) -> float:
    return r2(b[scored], RidgeMap(standardise=True).fit(a[fitted], b[fitted]).map_.apply(a[scored]))


def r2_interval(
    truth: np.ndarray, predicted: np.ndarray, study: Study, stream: str, groups: np.ndarray | None
) -> Estimate:
    rng = numpy_generator(study.seed, stream)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"r2": r2(truth, predicted, weights)}

    return bootstrap(statistic, len(truth), rng, groups=groups)["r2"]


def _follow(predicted: np.ndarray, b: np.ndarray) -> bool:
    """Whether pairs still follow the map: the median slope of the target on its prediction."""
    if len(b) < FEWEST_FOLLOWERS:
        return False
    squares = np.square(predicted).sum(1)
    slopes = (predicted * b).sum(1) / np.where(squares > 0, squares, 1.0)
    return bool(np.median(slopes) > FOLLOW)
