"""Recovery as a function of how isotropic exploration is: a dose–response curve.

Pairs are reweighted or resampled toward an isotropic Gaussian in the coordinates of the true state (the best case), and
a spectral encoder is fitted to them; or the loss is corrected by a width for each dimension, as AnInfoNCE does.
Recovery is scored on rows without weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import torch_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import (
    LatentSample,
    fresh_observations,
    r2_of_state,
    recipe_for,
    train_and_measure,
)
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.identifiability import dose_response
from jepatlas.objectives import InfoNCEConfig, PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import BoundedWalk, LatentWorld, OrnsteinUhlenbeck, SinusoidalShear, Spiral

__all__ = ["EXPERIMENT", "run_corrected", "run_weighted"]

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
GAIN = 0.05
WORLDS = {
    "two rates": LatentWorld(OrnsteinUhlenbeck(dim=2, rho=(0.95, 0.7)), SinusoidalShear()),
    "bounded walk": LatentWorld(BoundedWalk(dim=2), Spiral()),
}
TESTED = (
    ("reweight", "two rates"),
    ("resample", "two rates"),
    ("correct", "two rates"),
    ("reweight", "bounded walk"),
    ("resample", "bounded walk"),
)

CLAIM = Claim(
    statement="How much identifiability survives realistic exploration is a matter of degree: recovery should rise "
    "with a parameter that brings the data, or the loss, toward isotropy.",
    source="When Does LeJEPA Learn a World Model?, asked for by its readers; the paper advises isotropic exploration "
    "and measures only the two ends",
    measured="only the two ends: on Reacher R² .95 with Gaussian exploration, at most .50 on trajectories of a policy",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    pairs: int
    tests: int = 20_000


SCALES = {"tiny": Plan(30, 1, 1000, 1000), "small": Plan(2500, 3, 30_000), "paper": Plan(20_000, 5, 300_000)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    for method, name in TESTED:
        for s in range(seed, seed + plan.seeds):
            recipe = recipe_for(scale, WORLDS[name], steps=plan.steps, seed=s)
            where = {"method": method, "world": name.replace(" ", "-"), "seed": s}
            if method == "correct":
                trials += [_corrected(recipe, dose, where, plan.tests) for dose in DOSES]
            else:
                settings = {"recipe": to_plain(recipe), "pairs": plan.pairs, "method": method, "tests": plan.tests}
                trials.append(Trial(where | {"dose": "all"}, run_weighted, settings))
    return trials


def _corrected(recipe: Recipe, dose: float, where: Plain, tests: int) -> Trial:
    objective = InfoNCEConfig(kernel="anisotropic", adaptive=True, dose=dose)
    settings = {"recipe": to_plain(replace(recipe, objective=objective)), "tests": tests}
    return Trial(where | {"dose": dose}, run_corrected, settings)


def run_weighted(settings: Plain, folder: str) -> Plain:
    """All doses at once, since they share one density estimate."""
    del folder
    recipe = from_plain(Recipe, settings["recipe"])
    drawn = recipe.pairs.draw(recipe.world, settings["pairs"], torch_generator(recipe.seed, "isotropise"))
    x, x_next, z, z_next = (tensor.double().numpy() for tensor in (drawn.x, drawn.x_next, drawn.z, drawn.z_next))
    points = dose_response(
        x,
        x_next,
        z,
        z_next,
        {"own": fresh_observations(recipe, settings["tests"])},
        dim=recipe.world.dim,
        doses=DOSES,
        method=settings["method"],
        seed=recipe.seed,
    )
    found = {f"r2_{point.dose:g}": point.recovery["own"] for point in points}
    shares = {f"ess_{p.dose:g}": Estimate.exact(p.share, settings["pairs"]) for p in points}
    return {"status": "finished", "verdicts": as_verdicts(found | shares, "at this dose")}


def run_corrected(settings: Plain, folder: str) -> Plain:
    name = f"r2_{settings['recipe']['objective']['dose']:g}"

    def measure(recipe: Recipe, _: PairObjective, drawn: LatentSample) -> list[Plain]:
        return as_verdicts({name: r2_of_state(drawn.h, drawn.z, recipe.seed)}, "at this dose")

    return train_and_measure(settings["recipe"], folder, settings["tests"], measure)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    curves = {(method, world): _curve(results, method, world) for method, world in TESTED}
    criteria = []
    for (method, world), found in curves.items():
        change = f"R² {found[0].value:.3f} → {found[-1].value:.3f}"
        gained = found[-1].value - found[0].value >= GAIN
        criteria.append(Criterion(f"{method}, {world}: dose 0 to 1", change, f"gain ≥ {GAIN}", gained))
    helped = [criterion.met for criterion in criteria]
    return Finding(
        outcome_of_criteria(criteria),
        f"R² gains at least {GAIN} in {count_met(helped)} settings.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(method, world, found) for (method, world), found in curves.items()),
        figures=(_figure(curves),),
        tables=(_table(results, curves),),
    )


def _runs(results: Sequence[Result], method: str, world: str, dose: float) -> list[Result]:
    where = {"dose": dose} if method == "correct" else {}
    return select(results, method=method, world=world.replace(" ", "-"), **where)


def _curve(results: Sequence[Result], method: str, world: str) -> list[Estimate]:
    return [mean_and_range(_runs(results, method, world, dose), f"r2_{dose:g}") for dose in DOSES]


def _share(results: Sequence[Result], method: str, world: str, dose: float) -> float:
    """Effective share of the pairs; a corrected loss uses all of them."""
    if method == "correct":
        return 1.0
    return mean_and_range(_runs(results, method, world, dose), f"ess_{dose:g}").value


def _verdict(method: str, world: str, found: Sequence[Estimate]) -> Verdict:
    first = found[0]
    last = found[-1]
    gain = Estimate(last.value - first.value, last.low - first.high, last.high - first.low, last.n)
    return Verdict.judge(
        f"gain_{method}_{world.replace(' ', '_')}",
        gain,
        direction="higher",
        threshold=GAIN,
        null=0.0,
        good="Recovery rises with the dose, from any seed to any other (limits: range over seeds).",
        bad="Recovery does not rise that much from every seed to every other (limits: range over seeds).",
    )


def _figure(curves: dict[tuple[str, str], list[Estimate]]) -> Curves:
    panels = []
    for world in WORLDS:
        series = [curve(method, DOSES, found) for (method, name), found in curves.items() if name == world]
        panels.append(CurvePanel(series, world))
    return Curves(title="Recovery against the dose", x_label="dose", y_label="held-out R²", panels=panels)


def _table(results: Sequence[Result], curves: dict[tuple[str, str], list[Estimate]]) -> Table:
    rows = []
    for (method, world), found in curves.items():
        for dose, estimate in zip(DOSES, found, strict=True):
            rows.append([world, method, dose, cell(estimate), f"{_share(results, method, world, dose):.2f}"])
    columns = ["world", "method", "dose", "R², mean over seeds [range]", "effective share of the pairs"]
    return Table("Dose and response", columns, rows)


EXPERIMENT = Experiment("isotropisation", "From exploration as it is to isotropic exploration", CLAIM, trials, conclude)
