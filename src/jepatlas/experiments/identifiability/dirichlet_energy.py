"""The limit of infinitesimal noise: the alignment loss becomes the Dirichlet energy, which isometries minimise.

    L / (2(1−ρ)) → E‖Dh‖²_F  as ρ → 1           E‖Dh‖²_F ≥ n  if Cov h = I, with equality for h = Qz only

Both sides of the limit are measured for maps with known derivatives: the identity and the four mixings in the plane.
The minimum is tested on the same maps after whitening. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curves, Table
from jepatlas.core.linear import whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, outcome_of_criteria
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import curve, finished_only, horizontal, mean_and_range, select
from jepatlas.worlds import (
    AnyMixing,
    Coupling,
    LatentWorld,
    OrnsteinUhlenbeck,
    ParabolicShear,
    SinusoidalShear,
    Spiral,
)

__all__ = ["EXPERIMENT", "dirichlet_energies", "run"]

RHOS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
WITHIN = 0.05  # largest relative distance: of the scaled loss from the energy at the last ρ, and of an isometry from n
ISOMETRY = "identity"
MAPS: dict[str, AnyMixing] = {
    ISOMETRY: Spiral(twist=0.0),
    "spiral": Spiral(),
    "sinusoidal shear": SinusoidalShear(),
    "parabolic shear": ParabolicShear(),
    "coupling": Coupling(seed=1),
}

CLAIM = Claim(
    statement="With infinitesimal noise the alignment loss is the Dirichlet energy of the map. Among maps with "
    "covariance I, isometries have the least.",
    source="When Does LeJEPA Learn a World Model?, the limit of infinitesimal noise",
    proven="for smooth maps; that the minimisers are isometries follows from a theorem of Mazur and Ulam",
)


@dataclass(frozen=True)
class Plan:
    seeds: int
    rows: int
    replicates: int


SCALES = {"tiny": Plan(1, 2000, 20), "small": Plan(3, 100_000, 100), "paper": Plan(5, 1_000_000, 200)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    every = []
    for name, s in product(MAPS, range(seed, seed + plan.seeds)):
        world = to_plain(LatentWorld(OrnsteinUhlenbeck(dim=2), MAPS[name]))
        settings = {"world": world, "rows": plan.rows, "replicates": plan.replicates, "seed": s}
        every.append(Trial({"map": name, "seed": s}, run, settings))
    return every


def run(settings: Plain, folder: str) -> Plain:
    """The energy of a map, its loss at each ρ from the same states, and the energy after whitening."""
    del folder  # nothing is trained
    world = from_plain(LatentWorld, settings["world"])
    generator = torch_generator(settings["seed"], "dirichlet")
    z = world.states(settings["rows"], generator).double()
    h = world.observe(z)
    columns = {"energy": dirichlet_energies(world.mixing, z, np.eye(2))}
    columns["whitened"] = dirichlet_energies(world.mixing, z, whitener(h.numpy()).weight)
    for rho in RHOS:
        z_next = OrnsteinUhlenbeck(2, rho).transition(z, generator)
        distance = (h - world.observe(z_next)).square().sum(1)
        columns[f"loss_{rho:g}"] = distance.numpy() / (2 * (1 - rho))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        means = {name: float(np.average(column, weights=weights)) for name, column in columns.items()}
        return means | {f"gap_{rho:g}": means[f"loss_{rho:g}"] / means["energy"] - 1 for rho in RHOS}

    rng = numpy_generator(settings["seed"], "rows")
    found = bootstrap(statistic, len(z), rng, replicates=settings["replicates"])
    return {"status": "finished", "verdicts": as_verdicts(found, "over fresh states", "lower")}


def dirichlet_energies(mixing: AnyMixing, z: torch.Tensor, weight: np.ndarray) -> np.ndarray:
    """‖W Dh‖²_F at each state."""
    z = z.detach().requires_grad_()
    h = mixing(z)
    rows = [torch.autograd.grad(column.sum(), z, retain_graph=True)[0] for column in h.unbind(1)]
    jacobian_bdn = torch.stack(rows, dim=1)
    return (torch.from_numpy(weight) @ jacobian_bdn).square().sum((1, 2)).numpy()


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all losses reach the energy, and the energy of the whitened isometry is n and all others' are above.

    All numbers are compared by the worse end of their intervals.
    """
    del scale
    ended = finished_only(results)
    gaps = [result.estimate(f"gap_{RHOS[-1]:g}") for result in ended]
    reached = [_size(gap) <= WITHIN for gap in gaps]
    isometric = [result.estimate("whitened") for result in select(ended, map=ISOMETRY)]
    others = [result.estimate("whitened") for result in ended if result.at["map"] != ISOMETRY]
    least = min((other.low for other in others), default=np.nan)
    at_minimum = [one.low >= 2 * (1 - WITHIN) and one.high <= 2 * (1 + WITHIN) for one in isometric]
    above = [other.low > 2 * (1 + WITHIN) for other in others]
    criteria = (
        Criterion.for_all(f"runs with a loss within {WITHIN:.0%} of the energy at ρ = {RHOS[-1]}", reached),
        Criterion.for_all(f"whitened isometries with an energy within {WITHIN:.0%} of n = 2", at_minimum),
        Criterion(f"other whitened maps above {2 * (1 + WITHIN):g}", count_met(above), "all", all(above)),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"At ρ = {RHOS[-1]} the scaled loss is within {max(map(_size, gaps)):.1%} of the Dirichlet energy; "
        f"whitened, maps that are not isometries have at least {least:.2f}, isometries 2.",
        criteria=criteria,
        verdicts=(_verdict(gaps),),
        figures=(_figure(ended),),
        tables=(_table(results),),
    )


def _size(gap: Estimate) -> float:
    """The largest distance from zero within the interval."""
    return max(abs(gap.low), abs(gap.high))


def _verdict(gaps: Sequence[Estimate]) -> Verdict:
    sizes = [_size(gap) for gap in gaps]
    return Verdict.judge(
        "distance_at_the_limit",
        Estimate(float(np.median(sizes)), min(sizes), max(sizes), len(sizes)),
        direction="lower",
        threshold=WITHIN,
        good="The scaled loss reaches the Dirichlet energy (limits: range over runs).",
        bad="The scaled loss of some run does not demonstrably reach the Dirichlet energy (limits: range over runs).",
    )


def _figure(results: Sequence[Result]) -> Curves:
    noise = [1 - rho for rho in RHOS]
    series = []
    for name in MAPS:
        runs = select(results, map=name)
        series.append(curve(name, noise, [mean_and_range(runs, f"gap_{rho:g}") for rho in RHOS]))
    return Curves(
        title="Scaled alignment loss L / (2(1−ρ)) against the Dirichlet energy E‖Dh‖²",
        x_label="1 − ρ",
        y_label="loss / energy − 1",
        log_x=True,
        series=[*series, horizontal("limit", noise, 0.0)],
        note="Bands: range over seeds.",
    )


def _table(results: Sequence[Result]) -> Table:
    measured = {"E‖Dh‖²": "energy", "whitened": "whitened"}
    measured |= {f"relative distance of the loss, ρ = {rho:g}": f"gap_{rho:g}" for rho in RHOS}
    return run_table("All runs", results, {"map": "map", "seed": "seed"}, measured)


EXPERIMENT = Experiment("dirichlet", "The Dirichlet energy as the limit of the loss", CLAIM, trials, conclude)
