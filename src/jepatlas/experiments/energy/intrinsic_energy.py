"""Theorem 1: a least-action energy is a quasimetric. An audit of every world with known energies.

    E(x, y) ≥ 0      E(x, x) = 0      E(x, y) = 0 only if x = y      E(x, z) ≤ E(x, y) + E(y, z)

and for sets of goals E(x, G) ≤ E(x, y) + E(y, G). The theorem is proven; tested is whether the solvers compute such an
energy, and whether the audit catches energies that are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit import audit
from jepatlas.energy.audit.triangle import relative_gap
from jepatlas.experiments.energy.audited_worlds import BROKEN, CONTROLS, WORLDS
from jepatlas.experiments.energy.exact_worlds import GOALS, ExactWorld, Size
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, exact_verdicts, outcome_of, share_verdict
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range, mean_cells, plain

__all__ = ["AXIOMS", "EXPERIMENT", "goal_set", "run"]

AXIOMS = ("nonnegativity", "identity", "indiscernibles", "triangle", "midpoints", "goal_set")
LEAST = 1e-17  # smallest value drawn on a logarithmic axis
ROUNDING = 1e-12

CLAIM = Claim(
    statement="The least accumulated local effort over admissible trajectories, +∞ if there is none, is a quasimetric.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Theorem 1",
    proven="by concatenating trajectories",
    assumed="an additive effort of at least c‖v‖ with c > 0, and that concatenations are admissible",
)

SCALES = {
    "tiny": (Size(states=12, side=4, places=4, resolution=9, sets=3), 1),
    "small": (Size(states=150, side=12, places=14, resolution=41, sets=8), 3),
    "paper": (Size(states=256, side=16, places=40, resolution=101, sets=16), 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    size, seeds = SCALES[scale]
    coordinates = grid(world=(*WORLDS, *CONTROLS), seed=range(seed, seed + seeds))
    return [Trial(at, run, at | {"size": vars(size)}) for at in coordinates]


def run(settings: Plain, folder: str) -> Plain:
    """Build a world or a control, and audit its energies and those to a set."""
    del folder
    make = (WORLDS | CONTROLS)[settings["world"]]
    world = make(Size(**settings["size"]), settings["seed"])
    found = audit(world.energy, world.points, tolerance=world.slack, seed=settings["seed"])
    matrix = world.matrix
    allowed = found["triangle"].threshold or 0.0
    facts = {
        "states": len(matrix),
        "slack": world.slack or 0.0,
        "allowed": allowed,
        "unreachable": float(np.isinf(matrix).sum() / (matrix.size - len(matrix))),
    }
    verdicts = [verdict.to_json() for verdict in (*found.verdicts, goal_set(world, max(allowed, ROUNDING)))]
    return {"status": "finished", "verdicts": verdicts + exact_verdicts(facts, len(matrix), "")}


def goal_set(world: ExactWorld, allowed: float) -> Verdict:
    """The largest gap of E(x, G) ≤ E(x, y) + E(y, G), and of E(x, G) = min over g of E(x, g)."""
    matrix = world.matrix
    nearest = matrix[:, :GOALS].min(1)
    to_goals = nearest if world.to_goals is None else world.to_goals
    scale = float(np.median(matrix[np.isfinite(matrix) & (matrix > 0)]))
    detour = (matrix + to_goals[None, :]).min(1)
    gaps = [
        relative_gap(to_goals, np.maximum(detour, 0), scale),
        relative_gap(to_goals, nearest, scale),
        relative_gap(nearest, to_goals, scale),
    ]
    worst = float(np.max(gaps))
    return Verdict.judge(
        "goal_set",
        Estimate.exact(worst, matrix.size),
        direction="lower",
        threshold=allowed,
        null=0.0,
        good="The energy to a set of goals is that to its nearest member, and no detour is shorter.",
        bad="The energy to a set of goals is not that to its nearest member, or a detour is shorter.",
    )


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Undecided if the audit does not catch every control."""
    del scale
    found = {name: group for (name,), group in grouped(results, "world").items()}
    kept = {name: all(_broken_axioms(result) == set() for result in found[name]) for name in WORLDS}
    caught = [all(BROKEN[name] <= _broken_axioms(result) for result in found[name]) for name in CONTROLS]
    failing = [name for name, passes in kept.items() if not passes]
    worlds = list(kept.values())
    return Finding(
        outcome_of(worlds) if all(caught) else "undecided",
        f"All axioms hold in {count_met(worlds)} worlds; the audit catches {count_met(caught)} controls.",
        criteria=(
            Criterion.for_all(f"worlds without a broken axiom{_listed(failing)}", worlds),
            Criterion.for_all("controls caught by the audit", caught),
        ),
        verdicts=(_verdict(worlds, failing),),
        figures=(_figure(found),),
        tables=(_audit_table(found), _gap_table(found)),
    )


def _listed(names: Sequence[str]) -> str:
    return f" (broken: {', '.join(names)})" if names else ""


def _broken_axioms(result: Result) -> set[str]:
    """The axioms that the audit found broken; a pseudo-axiom if the trial has no audit."""
    verdicts = [Verdict.from_json(verdict) for verdict in result.record.get("verdicts", [])]
    if result.status != "finished" or not verdicts:
        return {"not audited"}
    return {verdict.name for verdict in verdicts if verdict.name in AXIOMS and verdict.passed is False}


def _verdict(kept: Sequence[bool], failing: Sequence[str]) -> Verdict:
    return share_verdict(
        "quasimetrics",
        kept,
        good="Every audited least-action energy is a quasimetric.",
        bad=f"Not quasimetrics: {', '.join(failing)}.",
    )


def _figure(found: Mapping[str, Sequence[Result]]) -> Curves:
    numbers = {name: number for number, name in enumerate(found, 1)}

    def points(title: str, names: Iterable[str], value: str) -> Curve:
        chosen = list(names)
        y = [max(mean_and_range(found[name], value).high, LEAST) for name in chosen]
        return Curve(title, [numbers[name] for name in chosen], y, points=True)

    return Curves(
        title="Largest gap in the triangle inequality",
        x_label="number in the table",
        y_label="(E(x, z) − detour) / E(x, z)",
        log_y=True,
        series=[
            points("worlds", WORLDS, "triangle"),
            points("controls", CONTROLS, "triangle"),
            points("allowed", found, "allowed"),
        ],
        note=f"Zero is drawn at {LEAST:.0e}.",
    )


def _gap_table(found: Mapping[str, Sequence[Result]]) -> Table:
    """Exact worlds have no slack; the gaps of the others are bounded by the solver's error."""
    gaps = {name: mean_and_range(found[name], "triangle").high for name in WORLDS}
    slacks = {name: mean_and_range(found[name], "slack").high for name in WORLDS}
    kinds = {
        "exact": [name for name in WORLDS if not slacks[name] > 0],
        "from a solver": [name for name in WORLDS if slacks[name] > 0],
    }
    rows = []
    for kind, names in kinds.items():
        rows.append([kind, ", ".join(names), f"{_largest(gaps, names):.0e}", f"{_largest(slacks, names):.3f}"])
    return Table("Largest gap by kind of energies", ["energies", "worlds", "triangle gap", "solver's slack"], rows)


def _largest(values: Mapping[str, float], names: Sequence[str]) -> float:
    return max((values[name] for name in names if np.isfinite(values[name])), default=np.nan)


def _audit_table(found: Mapping[str, Sequence[Result]]) -> Table:
    rows = []
    for number, (name, group) in enumerate(found.items(), 1):
        broken = sorted({axiom for result in group for axiom in _broken_axioms(result)})
        states = cell(mean_and_range(group, "states"), 0)
        largest = [mean_and_range(group, key).high for key in ("triangle", "midpoints", "goal_set", "allowed")]
        shares = mean_cells(group, ("unreachable", "floor", "asymmetry"))
        rows.append(
            [number, name, states, ", ".join(broken) or "none", *(plain(gap, ".1e") for gap in largest), *shares]
        )
    columns = [
        "",
        "world",
        "states",
        "axioms broken",
        "largest triangle gap",
        "by midpoints",
        "to goal sets",
        "allowed",
        "share unreachable",
        "largest c with E ≥ c‖x − y‖",
        "asymmetry",
    ]
    return Table("Audits, means over seeds [range]", columns, rows)


EXPERIMENT = Experiment("intrinsic-energy", "Least-action energies are quasimetrics", CLAIM, trials, conclude)
