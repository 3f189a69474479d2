"""A JEPA's squared prediction error, ‖p(f(x)) − f(y)‖², audited as an energy, beside two others on the same latents.

The sum of squares over a path is smaller than the square of the sum, so a detour over a midpoint is cheaper than the
direct path. And if the predictor moves, staying has a cost. The L2 distance of latents is a metric, which cannot
represent one-way doors. The energy of an IE-JEPA, trained after the encoder or jointly, is a quasimetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curves, Table
from jepatlas.core.linear import r2
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.energy import L2, IEJEPAConfig, PredictionError
from jepatlas.energy.audit import audit
from jepatlas.experiments.energy.learned_energies import AXIOMS, energy_recipe, fit_energy, named, quasimetric
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, exact_verdicts, outcome_of_criteria, share_verdict
from jepatlas.experiments.engine.seed_tables import finished_only, grouped, mean_and_range, mean_cells, scatter
from jepatlas.nn.mlp import mlp
from jepatlas.recipes import AgentConfig, EnergyRecipe
from jepatlas.workflows.energy import FittedEnergy, ground_truth_of, load_fitted
from jepatlas.worlds import Spiral

__all__ = ["EXPERIMENT", "fit_predictor", "run"]

MODES = ("separate", "joint")
ENERGIES = {
    "prediction": "squared prediction error",
    "l2": "L2 of latents",
    "learned": "energy of the IE-JEPA",
}
MEASURES = {
    "E(x, x), at most": "identity",
    "triangle gap": "triangle",
    "gap at points between": "midpoints",
    "Spearman": "spearman",
    "AUC, all pairs": "reachability_auc",
    "AUC, one-way pairs": "one_way_auc",
}
# network and training of the predictor
WIDTH = 64
DEPTH = 2
BATCH = 256
RATE = 3e-3

CLAIM = Claim(
    statement="A JEPA's score is a quasimetric if it is an intrinsic energy; the usual squared prediction error is "
    "not one: it breaks the identity and the triangle inequality.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Definition 3, "
    "Corollary 1 and section 5. That the squared error breaks both is our reading: the paper only does not claim that "
    "all JEPAs are quasimetrics",
    proven="the first part, for intrinsic energies",
    assumed="a predictor without actions, as in Definition 3",
)

SCALES = {"tiny": (("separate",), 20, 1), "small": (MODES, 1500, 3), "paper": (MODES, 10_000, 5)}
"""Modes, steps of the predictor, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    modes, predictor_steps, seeds = SCALES[scale]
    every = []
    for at in grid(mode=modes, seed=range(seed, seed + seeds)):
        settings = {"recipe": _recipe(scale, at["mode"], at["seed"]), "predictor_steps": predictor_steps}
        every.append(Trial(at, run, settings))
    return every


def _recipe(scale: Scale, mode: Any, seed: int) -> Plain:
    agent = AgentConfig(together=IEJEPAConfig(mode=mode))
    return to_plain(energy_recipe(scale, seed, mixing=Spiral(), agent=agent))


def run(settings: Plain, folder: str) -> Plain:
    """Train or resume, fit the predictor on the training steps, and audit at all states of the world."""
    recipe = from_plain(EnergyRecipe, settings["recipe"])
    place = Path(folder)
    record = fit_energy(recipe, place)
    if record["status"] != "finished":
        return record
    fitted = load_fitted(place)
    ground = ground_truth_of(recipe, recipe.seed)
    points = fitted.latents(ground.x).astype(np.float32)
    predictor = _predictor(fitted, settings["predictor_steps"])
    held = fitted.data.held
    with torch.no_grad():
        predicted = predictor(torch.as_tensor(fitted.latents(held.x), dtype=torch.float32)).double().numpy()
    energies = {
        "prediction": PredictionError(nn.Identity(), predictor),
        "l2": L2(points.shape[1]),
        "learned": fitted.energy,
    }
    verdicts = []
    for name, energy in energies.items():
        verdicts += named(name, audit(energy, points, truth=ground.truth, states=len(points)).verdicts)
    fit = {"predictor_r2": r2(fitted.latents(held.x_next), predicted)}
    verdicts += exact_verdicts(fit, len(predicted), "of the next latent, on held-out steps")
    return record | {"verdicts": verdicts}


def _predictor(fitted: FittedEnergy, steps: int) -> nn.Module:
    learnt = fitted.data.learnt
    return fit_predictor(fitted.latents(learnt.x), fitted.latents(learnt.x_next), steps, fitted.recipe.seed)


def fit_predictor(h: np.ndarray, h_next: np.ndarray, steps: int, seed: int) -> nn.Module:
    """p = argmin E‖p(h) − h'‖², a small network, fitted after the encoder."""
    x, y = (torch.as_tensor(rows, dtype=torch.float32) for rows in (h, h_next))
    with forked_rng(seed, "predictor"):
        predictor = mlp(x.shape[1], y.shape[1], WIDTH, DEPTH)
    optimiser = torch.optim.Adam(predictor.parameters(), RATE)
    rng = torch_generator(seed, "predictor batches")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (BATCH,), generator=rng)
        optimiser.zero_grad()
        (predictor(x[rows]) - y[rows]).square().sum(-1).mean().backward()
        optimiser.step()
        schedule.step()
    return predictor.eval().requires_grad_(False)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all criteria are met in every run, and in part if one of them is."""
    del scale
    ended = finished_only(results)
    triangle = [_failed(r, "prediction", "triangle") for r in ended]
    identity = [_failed(r, "prediction", "identity") for r in ended]
    kept = [quasimetric(r, "learned") for r in ended]
    criteria = (
        Criterion.for_all("squared error breaks the identity", identity, "all runs"),
        Criterion.for_all("squared error breaks the triangle inequality", triangle, "all runs"),
        Criterion.for_all("energy of the IE-JEPA breaks no axiom", kept, "all runs"),
    )
    gap = mean_and_range(ended, "prediction_triangle")
    return Finding(
        outcome_of_criteria(criteria),
        f"The squared error breaks the triangle inequality in {count_met(triangle)} runs, with a gap of "
        f"{gap.value:.2f}; the energy of the IE-JEPA breaks no axiom in {count_met(kept)}.",
        criteria=criteria,
        verdicts=(_verdict(triangle, kept),),
        figures=(_figure(ended),),
        tables=(_table(results), _offence_table(ended)),
    )


def _failed(result: Result, name: str, axiom: str) -> bool:
    verdicts = {verdict["name"]: verdict for verdict in result.record.get("verdicts", [])}
    return verdicts.get(f"{name}_{axiom}", {}).get("passed") is False


def _advice(result: Result, name: str) -> str:
    """First sentence of a verdict's advice: the worst pair or triple."""
    advice = {verdict["name"]: str(verdict["advice"]) for verdict in result.record.get("verdicts", [])}
    return advice.get(name, "").split(". ")[0].rstrip(".")


def _verdict(caught: Sequence[bool], kept: Sequence[bool]) -> Verdict:
    return share_verdict(
        "told_apart",
        [fails and keeps for fails, keeps in zip(caught, kept, strict=True)],
        good="The audit rejects the squared prediction error and passes the energy of the IE-JEPA in every run.",
        bad="The audit does not distinguish the two in every run.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    series = []
    for name, title in ENERGIES.items():
        groups = {title: results}
        if name == "learned":
            groups = {f"{title}, {mode}": runs for mode, runs in _by_mode(results).items()}
        for label, runs in groups.items():
            series.append(scatter(label, runs, f"{name}_midpoints", f"{name}_one_way_auc"))
    return Curves(
        title="Three energies on the same latents, all runs",
        x_label="largest triangle gap at points between",
        y_label="AUC over one-way pairs",
        series=series,
    )


def _by_mode(results: Sequence[Result]) -> dict[str, list[Result]]:
    return {mode: runs for (mode,), runs in grouped(results, "mode").items()}


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for mode, runs in _by_mode(results).items():
        for name, title in ENERGIES.items():
            cells = mean_cells(runs, [f"{name}_{measure}" for measure in MEASURES.values()])
            broken = [axiom for axiom in AXIOMS if any(_failed(run, name, axiom) for run in runs)]
            rows.append([mode, title, len(runs), *cells, ", ".join(broken) or "none"])
    title = "Energies on a JEPA's latents, trained after the encoder or jointly; means over seeds [range]"
    return Table(title, ["JEPA", "energy", "runs", *MEASURES, "broken"], rows)


def _offence_table(results: Sequence[Result]) -> Table:
    rows = []
    for r in results:
        offences = [_advice(r, f"prediction_{axiom}") for axiom in ("triangle", "identity")]
        rows.append([r.at["mode"], r.at["seed"], *offences])
    title = "Squared prediction error: worst triple and worst state"
    return Table(title, ["JEPA", "seed", "triangle", "identity"], rows)


EXPERIMENT = Experiment(
    "prediction-energy", "A squared prediction error is no intrinsic energy", CLAIM, trials, conclude
)
