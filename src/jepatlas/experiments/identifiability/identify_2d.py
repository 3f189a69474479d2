"""Theorem 1 in the plane: four nonlinear mixings, each to be undone up to a rotation; and SIGReg alone as a control.

The spiral mixing preserves the Gaussian, so its observations already minimise SIGReg. Only alignment can recover the
state, and SIGReg alone must fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.core.arrays import read_arrays
from jepatlas.core.figures import Scatter, ScatterPanel, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import certified_trial, recipe_for
from jepatlas.experiments.engine.rules import Criterion, outcome_in_stages
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, ParabolicShear, SinusoidalShear, Spiral

__all__ = ["EXPERIMENT", "FORMS", "exceeds_bound"]

WANTED = 0.985
CHANCE = 0.9
FORMS = {"": "", "_whitened": ", whitened"}
"""Theorem 3 bounds the error of the latents as trained. After whitening the bound also holds, and is tighter."""
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), SinusoidalShear(), ParabolicShear(), Coupling(seed=1))

CLAIM = Claim(
    statement="LeJEPA's optimum is the true state up to a rotation for every mixing. Gaussian latents alone are not "
    "sufficient.",
    source="When Does LeJEPA Learn a World Model?, Theorem 1 and the four mixings in the plane",
    proven="for the exact optimum in a Gaussian world with one rate and as many latents as states",
    assumed="Mehler's formula, and that degree one means linear and Gaussian means orthogonal, are axioms in the Lean "
    "proof",
    measured="all four mixings undone up to a rotation (shown as pictures; on the spiral R² .985 at λ = 1e-3 and .995 "
    "at 1e-2, scored on the fitted points)",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    control_steps: int
    seeds: int
    weight: float


SCALES = {"tiny": Plan(60, 60, 1, 0.01), "small": Plan(6000, 3000, 3, 0.01), "paper": Plan(20_000, 20_000, 3, 1e-3)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    seeds = range(seed, seed + plan.seeds)
    full = [_trial(scale, mixing, plan.steps, s, plan.weight) for mixing in MIXINGS for s in seeds]
    sigreg_alone = [_trial(scale, Spiral(), plan.control_steps, s, 1.0) for s in seeds]
    return full + sigreg_alone


def _trial(scale: Scale, mixing: AnyMixing, steps: int, seed: int, weight: float) -> Trial:
    world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=0.95), mixing)
    recipe = recipe_for(scale, world, steps=steps, seed=seed, weight=weight)
    return certified_trial(recipe, mixing=mixing.kind, weight=weight)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    full = [result for result in results if result.at["weight"] < 1]
    alone = [result for result in results if result.at["weight"] == 1]
    recovered = [result.estimate("r2").low >= WANTED for result in full]
    above = [result for result in results if any(exceeds_bound(result, form) for form in FORMS)]
    fails = [result.estimate("r2").high < CHANCE for result in alone]
    worst = min(full, key=lambda result: np.nan_to_num(result.value("r2"), nan=-1.0))
    best_alone = max(np.nan_to_num([result.value("r2") for result in alone]))
    criteria = (
        Criterion.for_all(f"runs with R² ≥ {WANTED}", recovered),
        Criterion("R² of SIGReg alone", f"≤ {best_alone:.3f}", f"< {CHANCE}", all(fails)),
        Criterion("runs with an error above the bound", f"{len(above)} of {len(results)}", "none", not above),
    )
    outcome = outcome_in_stages(any(recovered), all(criterion.met for criterion in criteria))
    return Finding(
        outcome,
        f"R² is at least {worst.value('r2'):.3f} in {len(full)} runs; SIGReg alone reaches {best_alone:.3f}.",
        criteria=criteria,
        verdicts=(_worst_verdict(worst),),
        figures=(_figure(full),),
        tables=(_table(results),),
        arrays=_arrays(full),
    )


def exceeds_bound(result: Result, form: str) -> bool:
    """Whether the lower limit of the error is above the upper limit of the bound."""
    return result.estimate(f"error_to_bound{form}").low > 1


def _worst_verdict(worst: Result) -> Verdict:
    return Verdict.judge(
        "worst_r2",
        worst.estimate("r2"),
        direction="higher",
        threshold=WANTED,
        good="The state is recovered for every mixing and seed.",
        bad=f"The state is not recovered in every run. Lowest R²: {worst.at['mixing']}, seed {worst.at['seed']}.",
    )


def _table(results: Sequence[Result]) -> Table:
    columns = {"R²": "r2", "orthogonality, whitened": "orthogonality"}
    for form, after in FORMS.items():
        columns |= {f"error{after}": f"procrustes{form}", f"bound{after}": f"bound{form}"}
    return run_table("All runs", results, {"mixing": "mixing", "λ": "weight", "seed": "seed"}, columns)


def _first_runs(full: Sequence[Result]) -> list[Result]:
    """The first run of each mixing that saved its samples."""
    first: dict[str, Result] = {}
    for result in full:
        if (result.folder / "records" / "certificate.npz").exists():
            first.setdefault(result.at["mixing"], result)
    return list(first.values())


def _arrays(full: Sequence[Result]) -> dict[str, np.ndarray]:
    """States, observations, and latents rotated to the states."""
    arrays: dict[str, np.ndarray] = {}
    for result in _first_runs(full):
        saved = read_arrays(result.folder / "records" / "certificate.npz")
        arrays |= {f"{result.at['mixing']}_{name}": saved[name] for name in ("z", "x", "h_rotated")}
    return arrays


def _figure(full: Sequence[Result]) -> Scatter:
    kinds = [result.at["mixing"] for result in _first_runs(full)]
    panels = [
        ScatterPanel(
            f"{kind}_{name}",
            f"{kind}: {title}",
            columns=[0, 1],
            color=f"{kind}_z",
            color_columns=[0, 1],
        )
        for name, title in (("x", "observation"), ("h_rotated", "latent, rotated"))
        for kind in kinds
    ]
    return Scatter(title="Observations and latents of four mixings", panels=panels)


EXPERIMENT = Experiment("identify-2d", "Four mixings in the plane", CLAIM, trials, conclude)
