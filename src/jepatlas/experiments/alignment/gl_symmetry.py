"""The JEPA loss under a change of coordinates, f ↦ Af and p ↦ A p(A⁻¹ ·): what stays, and how far the rest may go.

    L = E‖p(h) − h'‖²      L = 0 ⇒ L_A = 0      σ_min(A)² L ≤ L_A ≤ σ_max(A)² L

All A have |det A| = 1: neither shrinking nor growing, which would change the loss for a trivial reason. Beside it what
the same A does to two losses without a predictor: exact whitening, invariant under GL(d), and LeJEPA, under O(d) only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.alignment.gl_symmetry_runs import CONDITIONS, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.experiments.engine.seed_tables import select
from jepatlas.worlds import AnyMixing, InvertibleMLP, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

ROUNDING = 1e-9
SHOWN = 10.0
BOUNDS = {"low": "σ_min²", "high": "σ_max²"}
LOSSES = {"jepa": "JEPA, with its predictor", "lejepa": "LeJEPA", "whitening": "exact whitening"}

CLAIM = Claim(
    statement="At zero loss a JEPA may be replaced by any invertible linear change of its latents; at small loss "
    "σ_min(A)² L ≤ L_A ≤ σ_max(A)² L, so the loss is nearly invariant under well-conditioned ones.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Lemma D.4 and "
    "Proposition D.5",
    proven="for every encoder and predictor",
    assumed="that the predictor changes along with the encoder, and that nothing else is in the loss",
)


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]
    steps: int
    seeds: int
    samples: int
    draws: int


SCALES = {
    "tiny": Plan((2,), 40, 1, 1100, 3),
    "small": Plan((2, 4), 3000, 3, 10_000, 20),
    "paper": Plan((2, 4, 8), 20_000, 5, 40_000, 100),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"dim": dim, "seed": s},
            run,
            {"recipe": _recipe(scale, dim, plan.steps, s), "samples": plan.samples, "draws": plan.draws},
        )
        for dim in plan.dims
        for s in range(seed, seed + plan.seeds)
    ]


def _recipe(scale: Scale, dim: int, steps: int, seed: int) -> dict[str, Any]:
    mixing: AnyMixing = Spiral() if dim == 2 else InvertibleMLP(layers=2, seed=seed)
    return to_plain(
        recipe_for(scale, LatentWorld(OrnsteinUhlenbeck(dim=dim, rho=0.95), mixing), steps=steps, seed=seed)
    )


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    changes = [change for result in results for change in result.record.get("changes", [])]
    inside = [c["low"] * (1 - ROUNDING) <= c["jepa"] <= c["high"] * (1 + ROUNDING) for c in changes]
    zero = max(c["zero"] for c in changes)
    rules = [all(inside), zero <= ROUNDING]
    ten = _ranges([c for c in changes if c["condition"] == SHOWN])
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"A loss of zero stays zero to {zero:.0e} of the latents' size; σ_min² L ≤ L_A ≤ σ_max² L in {sum(inside)} of "
        f"{len(inside)} changes of coordinates. How near that is to invariance depends on κ(A): at κ = {SHOWN:g}, with "
        f"|det A| = 1, the JEPA loss comes to {_span(ten['jepa'])} times what it was, LeJEPA's to "
        f"{_span(ten['lejepa'])} times, and that of exact whitening to {_span(ten['whitening'])} times.",
        short=f"in bounds {sum(inside)} of {len(inside)}; at κ = {SHOWN:g} loss × {_span(ten['jepa'])}",
        verdicts=(_verdict(inside),),
        figures=(_figure(changes),),
        tables=(_table(results),),
    )


def _ranges(changes: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    return {name: (min(c[name] for c in changes), max(c[name] for c in changes)) for name in (*LOSSES, *BOUNDS)}


def _span(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.3g} to {ends[1]:.3g}"


def _verdict(inside: Sequence[bool]) -> Verdict:
    share = float(np.mean(inside))
    return Verdict.judge(
        "inside",
        Estimate(share, share, share, len(inside)),
        direction="higher",
        threshold=1.0,
        good="The loss keeps between its bounds under every change of coordinates that was drawn.",
        bad="The loss leaves its bounds under some changes of coordinates.",
    )


def _figure(changes: Sequence[dict[str, float]]) -> dict[str, Any]:
    bounds = [
        {
            "name": name,
            "x": list(CONDITIONS),
            "dash": True,
            "y": [next(c[key] for c in changes if c["condition"] == k) for k in CONDITIONS],
        }
        for key, name in BOUNDS.items()
    ]
    losses = [
        {"name": title, "points": True, "x": [c["condition"] for c in changes], "y": [c[name] for c in changes]}
        for name, title in LOSSES.items()
    ]
    return {
        "kind": "curves",
        "title": "Losses after a change of coordinates",
        "x_label": "κ(A)",
        "log_x": True,
        "y_label": "loss after / loss before",
        "log_y": True,
        "series": [*losses, *bounds],
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = []
    for dim, k in product(dict.fromkeys(result.at["dim"] for result in results), CONDITIONS):
        changes = [c for r in select(results, dim=dim) for c in r.record.get("changes", []) if c["condition"] == k]
        if changes:
            found, zero = _ranges(changes), max(c["zero"] for c in changes)
            rows.append(
                [
                    dim,
                    f"{k:g}",
                    f"{found['low'][0]:.3g} to {found['high'][1]:.3g}",
                    *(_span(found[name]) for name in LOSSES),
                    f"{zero:.0e}",
                ]
            )
    columns = ["d", "κ(A)", "σ_min² to σ_max²", *LOSSES.values(), "what is left of zero"]
    return {"title": "Loss after / loss before, smallest to largest", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("gl-symmetry", "The JEPA loss in other coordinates", CLAIM, trials, conclude)
