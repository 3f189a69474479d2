"""What the scaling study rests on besides training: which start is taken, and what collapse would cost."""

from pathlib import Path

import pytest
import torch

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Trial, as_verdicts
from jepatlas.experiments.identifiability.scaling import EXPERIMENT
from jepatlas.experiments.identifiability.scaling_runs import run_raw
from jepatlas.objectives import CovarianceConfig, LeJEPAConfig, Parts, SIGRegConfig

ROWS, RHO = 256, 0.9025


def result(loss: float, r2: float, **where: object) -> Result:
    at = {"encoder": "coupling", "objective": "SIGReg", "dim": 2, "seed": 0, "start": 0} | where
    estimates = {name: Estimate(value, value, value, 1) for name, value in (("loss", loss), ("r2", r2))}
    return Result(Trial(at, run_raw, {}), Path(), "finished", {"verdicts": as_verdicts(estimates, "")})  # pyright: ignore


def results(recovered: float, generic: float, alone: float) -> list[Result]:
    """A study in which every number is given: of two starts the one with less loss has the R² that counts."""
    found = []
    for dim in (2, 8):
        scores = {"SIGReg": recovered, "VICReg": recovered, "InfoNCE": 0.6, "alignment": alone}
        for name, r2 in scores.items():
            found += [result(2.0, 0.123, dim=dim, objective=name), result(1.0, r2, dim=dim, objective=name, start=1)]
        found.append(result(0.0, 0.75, dim=dim, encoder="none", objective="raw"))
    return [*found, result(1.0, generic, encoder="mlp"), result(1.0, 0.1, encoder="mlp", objective="alignment")]


@pytest.mark.parametrize(
    ("recovered", "generic", "alone", "outcome"),
    [
        (0.99, 0.99, 0.2, "holds"),
        (0.99, 0.99, 0.99, "holds in part"),  # the regulariser was not needed
        (0.99, 0.50, 0.2, "holds in part"),  # only the matched encoder recovers
        (0.90, 0.50, 0.2, "does not hold"),
    ],
)
def test_the_verdict_follows_its_rule(recovered: float, generic: float, alone: float, outcome: str):
    finding = EXPERIMENT.conclude(results(recovered, generic, alone), "tiny")
    assert finding.outcome == outcome
    (table,) = finding.tables
    assert f"0.1230, {recovered:.4f}" in table["rows"][0], "all starts are shown"
    assert f"{recovered:.4f} [{recovered:.4f}, {recovered:.4f}]" in table["rows"][0], "the one with less loss counts"


@pytest.mark.parametrize(
    ("objective", "dim", "cheaper"),
    [
        (LeJEPAConfig(weight=1e-6, sigreg=SIGRegConfig(slices=64)), 2, True),
        (LeJEPAConfig(weight=0.01, sigreg=SIGRegConfig(slices=64)), 2, False),
        (CovarianceConfig(weight=0.5), 8, False),
        (CovarianceConfig(weight=0.5), 40, True),
        (CovarianceConfig(weight=40 / 41), 40, False),
    ],
)
def test_at_the_published_weights_a_constant_costs_less_than_the_truth(objective, dim: int, cheaper: bool):
    generator = torch.Generator().manual_seed(0)
    z, noise = torch.randn(2, ROWS * 8, dim, generator=generator)
    loss = objective.build(Parts(torch.nn.Identity(), dim)).loss
    truth = loss(z[:ROWS], (RHO * z + (1 - RHO**2) ** 0.5 * noise)[:ROWS], 0).total
    constant = loss(torch.zeros(ROWS, dim), torch.zeros(ROWS, dim), 0).total
    assert bool(constant < truth) == cheaper
