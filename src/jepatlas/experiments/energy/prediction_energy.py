"""A JEPA's squared prediction error, ‖p(f(x)) − f(y)‖², audited as an energy, beside two others on the same latents.

A square adds up over a path to less than it is: so the way over a midpoint is cheaper than the direct one. And where
the predictor moves, staying costs something. The L2 distance of latents is a metric, which knows no one-way doors; the
energy of an IE-JEPA is a quasimetric by construction, trained apart from the encoder or jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy import IEJEPAConfig
from jepatlas.experiments.energy.energy_runs import AXIOMS, energy_recipe, quasimetric
from jepatlas.experiments.energy.prediction_energy_runs import ENERGIES, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range
from jepatlas.recipes import AgentConfig
from jepatlas.worlds import Spiral

__all__ = ["EXPERIMENT"]

MODES = ("separate", "joint")
MEASURES = {
    "E(x, x), at most": "identity",
    "triangle gap": "triangle",
    "gap at points between": "midpoints",
    "Spearman": "spearman",
    "AUC, all pairs": "reachability_auc",
    "AUC, one-way pairs": "one_way_auc",
}

CLAIM = Claim(
    statement="A JEPA's score is a quasimetric where it is an intrinsic energy; the usual squared prediction error is "
    "not one: it breaks the identity and the triangle inequality.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Definition 3, "
    "Corollary 1 and section 5. That the squared error breaks both is our reading: the paper only does not claim that "
    "all JEPAs are quasimetrics",
    proven="the first part, for intrinsic energies",
    assumed="a predictor without actions, as in Definition 3",
)

SCALES = {"tiny": (("separate",), 20, 1), "small": (MODES, 1500, 3), "paper": (MODES, 10_000, 5)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    modes, predictor_steps, seeds = SCALES[scale]
    return [
        Trial({"mode": mode, "seed": s}, run, {"recipe": _recipe(scale, mode, s), "predictor_steps": predictor_steps})
        for mode in modes
        for s in range(seed, seed + seeds)
    ]


def _recipe(scale: Scale, mode: Any, seed: int) -> dict[str, Any]:
    agent = AgentConfig(together=IEJEPAConfig(mode=mode))
    return to_plain(energy_recipe(scale, seed, mixing=Spiral(), agent=agent))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    finished = [r for r in results if r.status == "finished"]
    caught = {axiom: [_failed(r, "prediction", axiom) for r in finished] for axiom in ("identity", "triangle")}
    kept = [quasimetric(r, "learned") for r in finished]
    broken, count = [all(failed) for failed in caught.values()], len(finished)
    auc = {name: mean_and_range(finished, f"{name}_one_way_auc") for name in ENERGIES}
    gap = mean_and_range(finished, "prediction_triangle")
    return Finding(
        "holds" if all(broken) and all(kept) else "holds in part" if any(broken) or all(kept) else "does not hold",
        f"The squared prediction error breaks the triangle inequality in {sum(caught['triangle'])} of {count} runs, "
        f"with a largest gap of {cell(gap)}, and charges for staying in {sum(caught['identity'])}. {_worst(finished)} "
        f"The energy of the IE-JEPA on the same latents breaks no axiom in {sum(kept)} of {count}. AUC on one-way "
        "pairs: " + ", ".join(f"{ENERGIES[name]} {cell(found)}" for name, found in auc.items()) + ".",
        short=f"squared error: gap {gap.value:.2f} in {sum(caught['triangle'])} of {count}; IE-JEPA: {sum(kept)} clean",
        verdicts=(_verdict(caught["triangle"], kept),),
        figures=(_figure(finished),),
        tables=(_table(results), _triples(finished)),
    )


def _failed(result: Result, name: str, axiom: str) -> bool:
    verdicts = {verdict["name"]: verdict for verdict in result.record.get("verdicts", [])}
    return verdicts.get(f"{name}_{axiom}", {}).get("passed") is False


def _advice(result: Result, name: str) -> str:
    """What the audit says of one verdict, its first sentence: the offending pair or triple."""
    advice = {verdict["name"]: str(verdict["advice"]) for verdict in result.record.get("verdicts", [])}
    return advice.get(name, "").split(". ")[0].rstrip(".")


def _worst(results: Sequence[Result]) -> str:
    worst = max(results, key=lambda r: np.nan_to_num(r.value("prediction_triangle")))
    return f"The worst triple: {_advice(worst, 'prediction_triangle')}."


def _verdict(caught: Sequence[bool], kept: Sequence[bool]) -> Verdict:
    share = float(np.mean([fails and keeps for fails, keeps in zip(caught, kept, strict=True)]))
    return Verdict.judge(
        "told_apart",
        Estimate(share, share, share, len(kept)),
        direction="higher",
        threshold=1.0,
        good="The audit catches the squared prediction error and passes the energy of the IE-JEPA, in every run.",
        bad="The audit does not tell the two apart in every run.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    series = [
        {
            "name": ENERGIES[name] if name != "learned" else f"{ENERGIES[name]}, {mode}",
            "x": [r.value(f"{name}_midpoints") for r in runs],
            "y": [r.value(f"{name}_one_way_auc") for r in runs],
            "points": True,
        }
        for name in ENERGIES
        for mode, runs in (_by_mode(results) if name == "learned" else {"": results}).items()
    ]
    return {
        "kind": "curves",
        "title": "Three energies on the same latents: every run",
        "x_label": "largest triangle gap at points between",
        "y_label": "AUC over one-way pairs",
        "series": series,
    }


def _by_mode(results: Sequence[Result]) -> dict[str, list[Result]]:
    return {mode: runs for (mode,), runs in grouped(results, "mode").items()}


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            mode,
            title,
            len(runs),
            *(cell(mean_and_range(runs, f"{name}_{measure}")) for measure in MEASURES.values()),
            ", ".join(axiom for axiom in AXIOMS if any(_failed(r, name, axiom) for r in runs)) or "none",
        ]
        for mode, runs in _by_mode(results).items()
        for name, title in ENERGIES.items()
    ]
    return {
        "title": "Energies on a JEPA's latents, trained apart from the energy or jointly; means over seeds [extremes]",
        "columns": ["JEPA", "energy", "runs", *MEASURES, "broken"],
        "rows": rows,
    }


def _triples(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [r.at["mode"], r.at["seed"], _advice(r, "prediction_triangle"), _advice(r, "prediction_identity")]
        for r in results
    ]
    return {
        "title": "Squared prediction error: what offends most",
        "columns": ["JEPA", "seed", "triangle", "identity"],
        "rows": rows,
    }


EXPERIMENT = Experiment(
    "prediction-energy", "A squared prediction error is no intrinsic energy", CLAIM, trials, conclude
)
