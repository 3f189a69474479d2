"""Does a lower prediction loss go with better alignment? Over checkpoints of one training, as the paper proposes.

    ρ = Spearman correlation, over checkpoints, of the held-out loss with a measure of the pair's alignment

R² may rise because the second agent becomes easier to predict from anything. ρ is therefore also taken of R² beyond
what the first agent did not learn: R² to the same second agent from PCA of the first view or from the first network
before training, whichever is higher. Controls on both sides do not change during training, and neither would ρ beyond
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Finding, Result, Scale
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.engine.seed_tables import mean_and_interval, plain
from jepatlas.experiments.social.agent_pairs import pair_result, pairs_of_views, scored_rows, sides_of
from jepatlas.experiments.social.checkpoint_trials import LOSS_SHARE, checkpoint_steps, step_key
from jepatlas.experiments.social.decisions import (
    MEASURES,
    MIN_DIRECTIONS,
    VARIANTS,
    conservative,
    decide,
    positive_verdicts,
)
from jepatlas.experiments.social.pair_measures import translate

__all__ = ["checkpoint_pairs", "judge", "measure_checkpoints"]

CORRELATED = {**MEASURES, "beyond": "R² beyond what needs no learning"}
CORRELATED_VARIANTS = {**VARIANTS, "beyond": ("beyond",)}


def checkpoint_pairs(results: Sequence[Result], scale: Scale, rows: int) -> list[Result]:
    """Both agents of each seed, with their alignment at every checkpoint and its correlations with the loss."""
    steps = checkpoint_steps(scale)
    return [pair_result(a, b, partial(_with_losses, a, b, steps, rows)) for a, b in pairs_of_views(results)]


def measure_checkpoints(pair: PairedLatents, steps: Sequence[int], most: int) -> dict[str, float]:
    """Alignment at every checkpoint, on the same held-out states."""
    rows = scored_rows(pair, most)
    sides = sides_of(pair)
    found = {}
    for step in steps:
        a, b = (side.layers[step_key("h", step)] for side in (pair.a, pair.b))
        scores = translate(pair, a, b).scores(rows, rows)
        unlearned = []
        for control in ("untrained", "pca"):
            one = translate(pair, sides[control][0], b)
            unlearned.append(r2(one.target[rows], one.predicted[rows]))
        scores["beyond"] = scores["r2"] - max(unlearned)
        for variant in _variants():
            found[step_key(variant, step)] = scores[variant]
    return found


def _variants() -> list[str]:
    return [variant for variants in CORRELATED_VARIANTS.values() for variant in variants]


def _with_losses(a: Result, b: Result, steps: Sequence[int], most: int, pair: PairedLatents) -> dict[str, Estimate]:
    """Alignment, mean losses and the smaller number of directions at every checkpoint, and their correlations."""
    found = measure_checkpoints(pair, steps, most)
    for step in steps:
        for name, combine in (("loss", np.mean), (LOSS_SHARE, np.mean), ("directions", np.min)):
            key = step_key(name, step)
            found[key] = float(combine([a.value(key), b.value(key)]))
    for variant in _variants():
        course = [found[step_key(variant, step)] for step in steps]
        for loss in ("loss", LOSS_SHARE):
            losses = [found[step_key(loss, step)] for step in steps]
            found[f"rho_{loss}_{variant}"] = spearman(np.array(losses), np.array(course)).value
    found["fewest"] = min(found[step_key("directions", step)] for step in steps)
    return point_estimates(found, len(steps))


def judge(pairs: Sequence[Result], steps: Sequence[int]) -> Finding:
    """ρ must significantly have the predicted sign for R², DSC, NOS@10 and R² beyond what needs no learning."""
    found = {}
    for name, variants in CORRELATED_VARIANTS.items():
        estimates = [mean_and_interval(pairs, f"rho_loss_{way}", among=len(CORRELATED)) for way in variants]
        found[f"rho_{name}"] = conservative([_expected_sign(_clipped(one), name) for one in estimates])
    collapsed = any(not pair.value("fewest") >= MIN_DIRECTIONS for pair in pairs if pair.status == "finished")
    counts = [not collapsed] * len(found)
    outcome = decide(list(found.values()), counts)
    return Finding(
        outcome,
        f"A lower loss aligns better: {outcome}.",
        verdicts=positive_verdicts(
            found,
            "Alignment improves as the loss falls.",
            "Alignment does not significantly improve as the loss falls.",
            counts,
        ),
        figures=(_figure(pairs, steps),) if found["rho_r2"].n else (),
        tables=(_table(pairs, steps),),
    )


def _clipped(found: Estimate) -> Estimate:
    """Student's interval, limited to the range of a correlation."""
    return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))


def _expected_sign(found: Estimate, name: str) -> Estimate:
    """Positive if as predicted: ρ is negative for measures that should rise as the loss falls."""
    if name.startswith("nos"):
        return found
    return Estimate(-found.value, -found.high, -found.low, found.n)


def _figure(pairs: Sequence[Result], steps: Sequence[int]) -> Curves:
    """One line per pair, from its first checkpoint to its last."""
    finished = [pair for pair in pairs if pair.status == "finished"]
    panels = []
    for name, title in {**CORRELATED, "directions": "directions of the latents"}.items():
        lines = []
        for pair in finished:
            losses = [pair.value(step_key("loss", step)) for step in steps]
            lines.append(Curve(f"seed {pair.at['seed']}", losses, [pair.value(step_key(name, s)) for s in steps]))
        panels.append(CurvePanel(lines, title))
    return Curves(
        title="Alignment against the held-out loss during training",
        log_x=True,
        x_label="held-out prediction loss, mean of both agents",
        y_label="",
        panels=panels,
        note="Training goes from right to left where the loss falls.",
    )


def _table(pairs: Sequence[Result], steps: Sequence[int]) -> Table:
    columns = {
        "loss": "held-out loss",
        LOSS_SHARE: "loss as a share of the targets' variance",
        **CORRELATED,
        "directions": "directions",
    }
    rows = []
    for pair in pairs:
        for step in steps:
            cells = [plain(pair.value(step_key(name, step))) for name in columns]
            rows.append([pair.at["seed"], step, pair.status, *cells])
    return Table("Checkpoints of each pair of agents", ["seed", "step", "agents", *columns.values()], rows)
