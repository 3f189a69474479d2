"""The JEPA loss under a change of coordinates, f ↦ Af and p ↦ A p(A⁻¹ ·).

    L = E‖p(h) − h'‖²      L = 0 ⇒ L_A = 0      σ_min(A)² L ≤ L_A ≤ σ_max(A)² L

All A have |det A| = 1, since a change of scale would change the loss for a trivial reason. For comparison, the same A
are applied to two losses without a predictor: exact whitening, invariant under GL(d), and LeJEPA, under O(d).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.latent_pairs import random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.latent_trials import latent_sample, recipe_for
from jepatlas.experiments.engine.rules import Criterion, count_met, outcome_of_criteria, share_verdict
from jepatlas.experiments.engine.seed_tables import select, span
from jepatlas.objectives import PairObjective, Parts, WhiteningConfig
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, InvertibleMLP, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT", "changed_losses", "run"]

CONDITIONS = (1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
BATCH = 256  # rows, because SIGReg grows with their number
ROUNDING = 1e-9
SHOWN = 10.0
BOUNDS = {"low": "σ_min²", "high": "σ_max²"}
LOSSES = {"jepa": "JEPA, with its predictor", "lejepa": "LeJEPA", "whitening": "exact whitening"}

CLAIM = Claim(
    statement="At zero loss the latents of a JEPA may undergo any invertible linear change; at small loss "
    "σ_min(A)² L ≤ L_A ≤ σ_max(A)² L, so the loss is nearly invariant under well-conditioned changes.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Lemma D.4 and "
    "Proposition D.5",
    proven="for every encoder and predictor",
    assumed="that the predictor changes along with the encoder, and that nothing else is in the loss",
)


SCALES = {
    "tiny": ((2,), 40, 1, {"samples": 1100, "draws": 3}),
    "small": ((2, 4), 3000, 3, {"samples": 10_000, "draws": 20}),
    "paper": ((2, 4, 8), 20_000, 5, {"samples": 40_000, "draws": 100}),
}
"""Dimensions, steps of training, number of seeds, and settings of a trial."""

Change = dict[str, float]  # losses after a change of coordinates over losses before, and their bounds


def trials(scale: Scale, seed: int) -> list[Trial]:
    dims, steps, seeds, settings = SCALES[scale]
    every = []
    for at in grid(dim=dims, seed=range(seed, seed + seeds)):
        mixing: AnyMixing = Spiral() if at["dim"] == 2 else InvertibleMLP(layers=2, seed=at["seed"])
        world = LatentWorld(OrnsteinUhlenbeck(dim=at["dim"], rho=0.95), mixing)
        recipe = to_plain(recipe_for(scale, world, steps=steps, seed=at["seed"]))
        every.append(Trial(at, run, {"recipe": recipe} | settings))
    return every


def run(settings: Plain, folder: str) -> Plain:
    """Train, fit the predictor h → h' on half of the pairs, and change coordinates on the other half."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    drawn = latent_sample(recipe, objective, settings["samples"])
    rng = numpy_generator(recipe.seed, "changes")
    fit, rest = hold_out(len(drawn.h), rng)
    predictor = least_squares(drawn.h[fit], drawn.h_next[fit])
    charts = [(k, random_chart(recipe.world.dim, k, rng)) for k in CONDITIONS for _ in range(settings["draws"])]
    changes = []
    for condition, chart in charts:
        losses = changed_losses(drawn.h[rest], drawn.h_next[rest], predictor, chart, objective)
        changes.append({"condition": condition} | losses)
    return record | {"changes": changes}


def changed_losses(
    h: np.ndarray, h_next: np.ndarray, predictor: LinearMap, chart: np.ndarray, objective: PairObjective
) -> Change:
    """Every loss after the change of coordinates over the loss before, and the relative error of a loss of zero."""
    inverse = np.linalg.inv(chart)
    sigma = np.linalg.svd(chart, compute_uv=False)
    changed = h @ chart.T
    target = h_next @ chart.T
    reached = predictor.apply(h) @ chart.T
    predicted = predictor.apply(changed @ inverse.T) @ chart.T
    before = np.square(predictor.apply(h) - h_next).sum(1).mean()
    whitening = WhiteningConfig(epsilon=0.0).build(Parts(torch.nn.Identity(), h.shape[1])).eval()
    return {
        "low": float(sigma[-1] ** 2),
        "high": float(sigma[0] ** 2),
        "jepa": float(np.square(predicted - target).sum(1).mean() / before),
        "zero": float(np.sqrt(np.square(predicted - reached).sum() / np.square(reached).sum())),
        "lejepa": _loss(objective, changed, target) / _loss(objective, h, h_next),
        "whitening": _loss(whitening, changed, target) / _loss(whitening, h, h_next),
    }


def _loss(objective: PairObjective, h: np.ndarray, h_next: np.ndarray) -> float:
    """Mean over batches of the size used in training."""
    views = [torch.from_numpy(view[: len(view) // BATCH * BATCH]).split(BATCH) for view in (h, h_next)]
    losses = []
    with torch.no_grad():
        for step, (one, other) in enumerate(zip(views[0], views[1], strict=True)):
            losses.append(float(objective.loss(one, other, step).total))
    return float(np.mean(losses))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    changes = [change for result in results for change in result.record.get("changes", [])]
    inside = [c["low"] * (1 - ROUNDING) <= c["jepa"] <= c["high"] * (1 + ROUNDING) for c in changes]
    zero = max(c["zero"] for c in changes)
    shown = _ranges([c for c in changes if c["condition"] == SHOWN])
    criteria = (
        Criterion.for_all("changes with the loss between its bounds", inside),
        Criterion("a loss of zero after the change", f"{zero:.0e}", f"≤ {ROUNDING:g}", zero <= ROUNDING),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"The loss is within its bounds in {count_met(inside)} changes; at κ(A) = {SHOWN:g} it is "
        f"{span(shown['jepa'], '.3g')} times the loss before.",
        criteria=criteria,
        verdicts=(_verdict(inside),),
        figures=(_figure(changes),),
        tables=(_table(results),),
    )


def _ranges(changes: Sequence[Change]) -> dict[str, tuple[float, float]]:
    return {name: (min(c[name] for c in changes), max(c[name] for c in changes)) for name in (*LOSSES, *BOUNDS)}


def _verdict(inside: Sequence[bool]) -> Verdict:
    return share_verdict(
        "inside",
        inside,
        good="The loss is between its bounds for all changes of coordinates.",
        bad="The loss is outside its bounds for some changes of coordinates.",
    )


def _figure(changes: Sequence[Change]) -> Curves:
    conditions = [c["condition"] for c in changes]
    series = [Curve(title, conditions, [c[name] for c in changes], points=True) for name, title in LOSSES.items()]
    for key, name in BOUNDS.items():
        values = [next(c[key] for c in changes if c["condition"] == k) for k in CONDITIONS]
        series.append(Curve(name, list(CONDITIONS), values, dash=True))
    return Curves(
        title="Losses after a change of coordinates",
        x_label="κ(A)",
        log_x=True,
        y_label="loss after / loss before",
        log_y=True,
        series=series,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    dims = dict.fromkeys(result.at["dim"] for result in results)
    for dim, condition in product(dims, CONDITIONS):
        every = [change for result in select(results, dim=dim) for change in result.record.get("changes", [])]
        changes = [change for change in every if change["condition"] == condition]
        if not changes:
            continue
        found = _ranges(changes)
        zero = max(change["zero"] for change in changes)
        bounds = f"{found['low'][0]:.3g} to {found['high'][1]:.3g}"
        rows.append([dim, f"{condition:g}", bounds, *(span(found[name], ".3g") for name in LOSSES), f"{zero:.0e}"])
    columns = ["d", "κ(A)", "σ_min² to σ_max²", *LOSSES.values(), "a loss of zero"]
    return Table("Loss after / loss before, smallest to largest", columns, rows)


EXPERIMENT = Experiment("gl-symmetry", "The JEPA loss in other coordinates", CLAIM, trials, conclude)
