"""A learned energy as a record: is it a quasimetric, on the scale of the truth, and does it know the one-way doors?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.energy import discounted, reachability_errors, with_unreachable
from jepatlas.energy.audit import Audit, audit
from jepatlas.workflows.energy.energy_file import save_energy
from jepatlas.workflows.energy.figures import audit_figures
from jepatlas.workflows.energy.fitted import FittedEnergy, load_fitted
from jepatlas.workflows.energy.ground import Ground, ground_of
from jepatlas.workflows.energy.landscapes import energy_landscapes

__all__ = ["JudgedEnergy", "judge_fitted", "judge_run"]

MISSED_ALLOWED = 0.05


@dataclass(frozen=True)
class JudgedEnergy:
    """The record, and what it was made from."""

    record: Record
    audit: Audit
    fitted: FittedEnergy
    ground: Ground
    energies: np.ndarray  # (n, n) of the ground's states

    @property
    def passed(self) -> bool:
        return all(verdict.passed is not False for verdict in self.record.verdicts)


def judge_run(folder: Path, *, seed: int = 0, out: Path | None = None, tolerance: float | None = None) -> JudgedEnergy:
    """Judge the energy of a run; keeps `records/energy.json`, and the energy itself as `energy.safetensors`."""
    fitted = load_fitted(folder)
    ground, title = ground_of(fitted.recipe, seed), f"Energy of {folder.name}"
    judged = judge_fitted(fitted, ground, title=title, seed=seed, tolerance=tolerance)
    judged.record.save(out or folder, "energy")
    save_energy(fitted.saved(), (out or folder) / "energy.safetensors")
    return judged


def judge_fitted(
    fitted: FittedEnergy, ground: Ground, *, title: str, seed: int = 0, tolerance: float | None = None
) -> JudgedEnergy:
    points = fitted.latents(ground.x).astype(np.float32)
    truth = _comparable(fitted, ground.truth)
    found = audit(fitted.energy, points, truth=truth, states=len(points), tolerance=tolerance, seed=seed)
    energies = fitted.matrix(ground.x)
    found = replace(found, verdicts=tuple(_advised(fitted, verdict) for verdict in found.verdicts))
    arrays, figures = energy_landscapes(fitted, energies, ground)
    record = Record(
        title,
        _summary(fitted, ground, found, energies),
        provenance(seed) | {"trained with seed": fitted.recipe.seed, "states": len(points)},
        (*found.verdicts, *_own_verdicts(fitted)),
        (*figures, *audit_figures(found, fitted.recipe.head.kind)),
        arrays=arrays,
    )
    return JudgedEnergy(record, found, fitted, ground, energies)


def _comparable(fitted: FittedEnergy, truth: np.ndarray | None) -> np.ndarray | None:
    """Discounted values are held against discounted truth; undoing the discount could break the triangle inequality."""
    if truth is None or fitted.gamma is None:
        return truth
    unit = fitted.data.unit
    return np.where(np.isfinite(truth), unit * discounted(truth / unit, fitted.gamma), np.inf)


def _advised(fitted: FittedEnergy, verdict: Verdict) -> Verdict:
    """Discounted values are no lengths, so the scale of steps is no cure for them."""
    if fitted.gamma is None or verdict.name != "calibration_error" or verdict.passed is not False:
        return verdict
    return replace(
        verdict,
        advice=f"These values are discounted by γ = {fitted.gamma:g} a step, and so was the truth that they were held "
        "against: compare them with no other. Do not bring them to the scale of steps, but train for longer, or learn "
        "the energy itself with --learning qrl.",
    )


def _own_verdicts(fitted: FittedEnergy) -> list[Verdict]:
    """What steps alone say: the factor that calibrated it, and known ways that it takes for none."""
    verdicts = []
    if fitted.scale is not None:
        verdicts.append(
            Verdict.judge(
                "step_scale",
                fitted.scale,
                direction="lower",
                null=fitted.data.unit,
                good="The factor that brings the mean energy of held-out steps to their mean cost; it is applied.",
            )
        )
    if np.isfinite(fitted.threshold):
        verdicts.append(
            Verdict.judge(
                "ways_missed",
                fitted.missed,
                direction="lower",
                threshold=MISSED_ALLOWED,
                good=f"Energies above {fitted.threshold:.3g} are called unreachable; hardly any way that "
                f"held-out episodes "
                "took is.",
                bad=_doubted(fitted),
            )
        )
    return verdicts


def _doubted(fitted: FittedEnergy) -> str:
    called = f"Energies above {fitted.threshold:.3g} are called unreachable"
    if fitted.missed.value <= MISSED_ALLOWED:
        return f"{called}; hardly any way that held-out episodes took is, but they are too few to be sure."
    return (
        f"{called}, and so are ways that held-out episodes took: do not trust the call. Train longer, or with a larger "
        "--learning.offset."
    )


def _summary(fitted: FittedEnergy, ground: Ground, found: Audit, energies: np.ndarray) -> str:
    names = {verdict.name: verdict for verdict in found.verdicts}
    failed = [
        name
        for name in ("nonnegativity", "identity", "triangle", "midpoints")
        if name in names and names[name].passed is False
    ]
    what = f"no quasimetric: {', '.join(failed)} failed" if failed else "a quasimetric"
    said = [f"The {fitted.recipe.head.kind} energy is {what} on {len(found.states)} states."]
    if "spearman" in names:
        against = "exact" if fitted.gamma is None else "discounted exact"
        said.append(
            f"Against the {against} truth: Spearman {names['spearman'].value:.3f}, ratio "
            f"{names['median_ratio'].value:.3f} [{names['ratio_5'].value:.3f}, {names['ratio_95'].value:.3f}] "
            "(median, 5% to 95%)."
        )
    if "one_way_auc" in names:
        said.append(
            f"AUC on one-way pairs {names['one_way_auc'].value:.3f} (a symmetric energy has 0.5); of "
            f"{names['one_way_order'].value:.1%} of them it has the direction right."
        )
    return " ".join([*said, _called(fitted, ground, energies)]).strip()


def _called(fitted: FittedEnergy, ground: Ground, energies: np.ndarray) -> str:
    """The decision on what is out of reach, after it was made transitive."""
    if not np.isfinite(fitted.threshold):
        return "Its energies show no gap that would tell what is out of reach, so nothing is called so."
    others = ~np.eye(len(energies), dtype=bool)  # nobody asks whether a state can be reached from itself
    closed = np.isfinite(with_unreachable(energies, fitted.threshold))[others]
    said = f"Above {fitted.threshold:.3g} pairs are called unreachable, transitively: {1 - closed.mean():.1%} of them"
    if ground.truth is None:
        return said + "."
    errors = reachability_errors(energies[others], ground.truth[others], closed)
    return (
        f"{said}, with {errors.imagined:.1%} of unreachable and {errors.missed:.1%} of reachable pairs called wrongly."
    )
