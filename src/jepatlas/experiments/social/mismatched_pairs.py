"""How many pairs a map between trained agents needs, and what mismatched pairs cost.

The agents are those of `social-views`, so nothing is trained. Maps are fitted between the principal directions that
hold 99% of the variance of standardised latents. `pair-budget` and `pair-noise` ask the same of charts whose map is
known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.alignment.maps import FittedMap, LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.pair_noise import PUBLISHED, SHARES, mismatch
from jepatlas.experiments.engine.experiment import (
    Claim,
    Experiment,
    Finding,
    Result,
    Scale,
    Trial,
    point_estimates,
)
from jepatlas.experiments.engine.seed_tables import (
    curve,
    extremes,
    geometric_mean_and_interval,
    mean_and_interval,
    mean_and_range,
)
from jepatlas.experiments.social.agent_pairs import groups_of_pair, pair_results, split_of
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.decisions import (
    UNKNOWN,
    collapse_note,
    collapsed_seeds,
    decide,
    informative,
    measured_groups,
)
from jepatlas.experiments.social.pair_measures import leading_directions
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.trained_agents import agent_trials

__all__ = ["EXPERIMENT", "budgets", "judge", "measure_budgets_and_noise"]

Scenes = Mapping[str, Sequence[Result]]
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving"),
    "paper": ("smallnorb", "nuscenes-rear"),
}
MIN_GROWTH = 10.0
"""κ must grow by this factor."""
RULES = 3
BUDGETS = (50, 100, 200, 500, 1000, 5000, 20_000)
METHODS: dict[str, Callable[[], LeastSquaresMap | RidgeMap | ProcrustesMap]] = {
    "least squares": LeastSquaresMap,
    "ridge": RidgeMap,
    "Procrustes": lambda: ProcrustesMap(scaled=True),
}
NOISE_METHODS = {"least squares": LeastSquaresMap, "robust": RobustMap}
LOWEST_DRAWN = -1.0

CLAIM = Claim(
    statement="Between trained agents, more pairs give a better map; a share of mismatched pairs lowers R² and drives "
    "up κ(W), tenfold and more.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 4 and Figure 5",
    measured="R² .891, .814, .692 and κ(W) 1.68, 14.4, 138 with 0, .1 and .3 mismatched; pairs from 50 to 20,000",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for scene in STUDIED[scale] for trial in agent_trials(scale, scene, seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return judge(pair_results(results, measure_budgets_and_noise))


def measure_budgets_and_noise(pair: PairedLatents) -> dict[str, Estimate]:
    """Held-out R² and κ of maps fitted on few pairs, and on mismatched ones."""
    fit, score = split_of(pair)
    groups = groups_of_pair(pair)
    a, b = (leading_directions(side.h, fit) for side in (pair.a, pair.b))
    order = numpy_generator(0, "pairs").permutation(fit)
    held = a[score], b[score]
    found = {}
    for count in budgets(len(fit)):
        rows = order[:count]
        for name, method in METHODS.items():
            fitted = _fit(method(), a[rows], b[rows], groups[rows])
            found |= _scores(f"{name}_{count}", fitted, held)
    for share in SHARES:
        partners = order[mismatch(len(order), share, numpy_generator(0, "mismatch"))]
        for name, method in NOISE_METHODS.items():
            found |= _scores(f"noise_{name}_{share:g}", method().fit(a[order], b[partners]), held)
    most = f"noise_least squares_{SHARES[-1]:g}"
    found["lost"] = found["r2_noise_least squares_0"] - found[f"r2_{most}"]
    found["growth"] = found[f"kappa_{most}"] / found["kappa_noise_least squares_0"]
    found["gained"] = found[f"r2_ridge_{len(fit)}"] - found[f"r2_ridge_{budgets(len(fit))[0]}"]
    return point_estimates(found, len(score))


def budgets(most: int) -> list[int]:
    """The published budgets below the number of pairs, and all pairs.

    >>> budgets(700)
    [50, 100, 200, 500, 700]
    """
    return [*(budget for budget in BUDGETS if budget < most), most]


def _fit(
    method: LeastSquaresMap | RidgeMap | ProcrustesMap, a: np.ndarray, b: np.ndarray, groups: np.ndarray
) -> FittedMap:
    """Ridge chooses its penalty by whole groups; few pairs may all be of one group."""
    if isinstance(method, RidgeMap) and len(np.unique(groups)) > 1:
        return method.fit(a, b, groups=groups)
    return method.fit(a, b)


def _scores(name: str, fitted: FittedMap, held: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    a, b = held
    return {f"r2_{name}": r2(b, fitted.transform(a)), f"kappa_{name}": fitted.conditioning_.condition}


def judge(pairs: Sequence[Result]) -> Finding:
    """In every scene, R² must significantly grow with pairs and fall with mismatches, and κ grow by MIN_GROWTH.
    Scenes with collapsed agents are excluded."""
    scenes, missing = measured_groups(pairs, "scene", "lost")
    counts = {scene: not collapsed_seeds(runs) for scene, runs in scenes.items()}
    among = max(1, RULES * sum(counts.values()))
    expected, counted = [UNKNOWN] * missing, [False] * missing
    for scene, runs in scenes.items():
        expected += _rules(runs, among)
        counted += [counts[scene]] * RULES
    met = sum(count and rule.low > 0 for rule, count in zip(expected, counted, strict=True))
    excluded = "" if all(counted) else f"; {list(counts.values()).count(False)} scenes collapsed"
    titled = {SCENES[scene].title: runs for scene, runs in scenes.items()}
    return Finding(
        decide(expected, counted),
        f"{met} of {sum(counted)} rules are met: per scene, R² grows with pairs and falls with mismatches, and κ grows "
        f"{MIN_GROWTH:g}-fold.{collapse_note(titled)}",
        short=f"more pairs, mismatches, κ: {met} of {sum(counted)} rules met{excluded}",
        verdicts=tuple(informative(_verdict(scene, runs, among), counts[scene]) for scene, runs in scenes.items()),
        figures=(_budget_figure(scenes), _noise_figure(scenes)),
        tables=(_budget_table(scenes), _noise_table(scenes)),
    )


def _rules(runs: Sequence[Result], among: int) -> list[Estimate]:
    """What should be above 0: R² gained by pairs, R² lost by mismatches, and log(growth of κ / MIN_GROWTH)."""
    growth = geometric_mean_and_interval(runs, "growth", among)
    with np.errstate(divide="ignore"):  # the lower limit may be 0
        value, low, high = np.log(np.array([growth.value, growth.low, growth.high]) / MIN_GROWTH).tolist()
    gained, lost = (mean_and_interval(runs, name, among) for name in ("gained", "lost"))
    return [gained, lost, Estimate(value, low, high, growth.n)]


def _verdict(scene: str, runs: Sequence[Result], among: int) -> Verdict:
    return Verdict.judge(
        f"growth_{scene}",
        geometric_mean_and_interval(runs, "growth", among),
        direction="higher",
        threshold=MIN_GROWTH,
        good="Mismatched pairs make the map ill-conditioned, as published.",
        bad="Mismatched pairs do not significantly make the map ill-conditioned as published.",
    )


def _counts_of(runs: Sequence[Result]) -> list[int]:
    """The budgets that were measured."""
    names = {verdict["name"] for run in runs for verdict in run.record["verdicts"]}
    return sorted(int(name.rsplit("_", 1)[1]) for name in names if name.startswith("r2_ridge_"))


def _budget_figure(scenes: Scenes) -> Curves:
    panels = []
    for scene, runs in scenes.items():
        counts = _counts_of(runs)
        lines = []
        for name in METHODS:
            lines.append(curve(name, counts, [_drawn(mean_and_range(runs, f"r2_{name}_{n}")) for n in counts]))
        panels.append(CurvePanel(lines, SCENES[scene].title))
    return Curves(
        title="Held-out R² against the number of pairs",
        x_label="pairs",
        log_x=True,
        y_label="held-out R²",
        panels=panels,
        note=f"R² below {LOWEST_DRAWN:g} is drawn as {LOWEST_DRAWN:g}.",
    )


def _drawn(found: Estimate) -> Estimate:
    value, low, high = (max(number, LOWEST_DRAWN) for number in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.n)


def _noise_figure(scenes: Scenes) -> Curves:
    panels = []
    for scene, runs in scenes.items():
        lines = []
        for name in NOISE_METHODS:
            points = [mean_and_range(runs, f"r2_noise_{name}_{share:g}") for share in SHARES]
            lines.append(curve(name, SHARES, points))
        lines.append(Curve("published", list(PUBLISHED), [score for score, _ in PUBLISHED.values()], dash=True))
        panels.append(CurvePanel(lines, SCENES[scene].title))
    return Curves(
        title="Held-out R² against mismatched pairs",
        x_label="share mismatched",
        y_label="held-out R²",
        panels=panels,
    )


def _budget_table(scenes: Scenes) -> Table:
    rows = []
    for scene, runs in scenes.items():
        for n in _counts_of(runs):
            scores = [extremes(mean_and_range(runs, f"r2_{name}_{n}")) for name in METHODS]
            kappa = f"{_median(runs, f'kappa_least squares_{n}'):.3g}"
            directions = extremes(mean_and_range(runs, "directions"), 1)
            rows.append([SCENES[scene].title, f"{n:,}", *scores, kappa, directions])
    columns = ["scene", "pairs", *(f"R², {name}" for name in METHODS), "κ(W), least squares (median)", "directions"]
    return Table("Pairs: held-out R², means over seeds (lowest to highest)", columns, rows)


def _noise_table(scenes: Scenes) -> Table:
    rows = []
    for scene, runs in scenes.items():
        for share in SHARES:
            scores = [extremes(mean_and_range(runs, f"r2_noise_{name}_{share:g}")) for name in NOISE_METHODS]
            kappas = [f"{_median(runs, f'kappa_noise_{name}_{share:g}'):.3g}" for name in NOISE_METHODS]
            published = " ".join(map(str, PUBLISHED.get(share, ("–",))))
            directions = extremes(mean_and_range(runs, "directions"), 1)
            rows.append([SCENES[scene].title, f"{share:g}", *scores, *kappas, published, directions])
    columns = [
        "scene",
        "mismatched",
        *(f"R², {name}" for name in NOISE_METHODS),
        *(f"κ(W), {name}" for name in NOISE_METHODS),
        "published R², κ",
        "directions",
    ]
    return Table("Mismatched pairs: held-out R², means over seeds (lowest to highest)", columns, rows)


def _median(runs: Sequence[Result], name: str) -> float:
    return float(np.median([run.value(name) for run in runs]))


EXPERIMENT = Experiment("social-pairs", "Few and mismatched pairs of trained agents", CLAIM, trials, conclude)
