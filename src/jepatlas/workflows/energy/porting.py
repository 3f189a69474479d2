"""An energy of one model, carried to another: still a quasimetric, and how much of its accuracy is left.

Both are judged on the same states, which the map between the models has not seen: the source's energy on its own
latents, the ported one on the other's. With the exact truth both are held against it; without, the one against the
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.linear_map import LinearMap
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit import Audit, audit
from jepatlas.energy.audit.weighted_statistics import WeightedRanks, weighted_spearman
from jepatlas.workflows.energy.energy_file import SavedEnergy
from jepatlas.workflows.energy.figures import audit_figures
from jepatlas.workflows.energy.fitted import pairwise

__all__ = ["Ported", "port_energy"]

LOST_ALLOWED = 0.02
AGREEMENT_NEEDED = 0.95


@dataclass(frozen=True)
class Ported:
    """The energy for the other model, and what it is worth there."""

    saved: SavedEnergy
    record: Record
    audit: Audit
    energies: np.ndarray  # (n, n) on the other model's latents


def port_energy(
    saved: SavedEnergy,
    to_source: LinearMap,
    source: np.ndarray,
    target: np.ndarray,
    *,
    truth: np.ndarray | None = None,
    names: tuple[str, str] = ("A", "B"),
    seed: int = 0,
) -> Ported:
    """Carry an energy on latents of A to B; `source` and `target` are latents of the same held-out states."""
    there = saved.ported(to_source)
    found = audit(there.model(), target.astype(np.float32), truth=truth, states=len(target), seed=seed)
    home, abroad = pairwise(saved.model(), source), pairwise(there.model(), target)
    verdicts = (*found.verdicts, *_compared(home, abroad, truth, seed))
    record = Record(
        f"The energy of {names[0]}, for {names[1]}",
        _summary(verdicts, names, truth is not None),
        provenance(seed) | {"states": len(target)},
        verdicts,
        audit_figures(found, "ported"),
    )
    return Ported(there, record, found, abroad)


def _compared(home: np.ndarray, abroad: np.ndarray, truth: np.ndarray | None, seed: int) -> list[Verdict]:
    """Order kept: between both energies, and against the truth what the ported one loses; intervals over states."""
    others = ~np.eye(len(home), dtype=bool)
    exact = home if truth is None else truth
    known = others & np.isfinite(exact)
    ranks = {name: WeightedRanks(values[known]) for name, values in (("home", home), ("abroad", abroad))}
    true = WeightedRanks(exact[known])

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)[known]
        found = {"agreement": weighted_spearman(ranks["home"], ranks["abroad"], pairs)}
        if truth is not None:
            at_home, away = (weighted_spearman(true, ranks[name], pairs) for name in ("home", "abroad"))
            found |= {"spearman_source": at_home, "spearman_lost": at_home - away}
        return found

    found = bootstrap(statistic, len(home), numpy_generator(seed, "porting"), replicates=200)
    return _judged(found)


def _judged(found: dict[str, Estimate]) -> list[Verdict]:
    verdicts = [
        Verdict.judge(
            "agreement",
            found["agreement"],
            direction="higher",
            threshold=AGREEMENT_NEEDED,
            null=0.0,
            good="Both energies put pairs of states in the same order.",
            bad="The energies differ in the order of pairs: the map carries too little. Fit it on more shared states.",
        )
    ]
    if "spearman_lost" in found:
        verdicts += [
            Verdict.judge(
                "spearman_source",
                found["spearman_source"],
                direction="higher",
                null=0.0,
                good="What the energy has on the model that it was learned on.",
            ),
            Verdict.judge(
                "spearman_lost",
                found["spearman_lost"],
                direction="lower",
                threshold=LOST_ALLOWED,
                null=0.0,
                good="Porting costs hardly any accuracy.",
                bad="Porting costs accuracy: what the map does not carry, the energy cannot know.",
            ),
        ]
    return verdicts


def _summary(verdicts: tuple[Verdict, ...], names: tuple[str, str], exact: bool) -> str:
    named: dict[str, Any] = {verdict.name: verdict for verdict in verdicts}
    axioms = [name for name in ("nonnegativity", "identity", "triangle", "midpoints") if named[name].passed is False]
    said = [f"The energy learned on {names[0]} is {'no' if axioms else 'a'} quasimetric on {names[1]}."]
    if exact:
        said.append(
            f"Spearman with the truth: {named['spearman_source'].value:.3f} on {names[0]}, "
            f"{named['spearman'].value:.3f} on {names[1]}, with no training."
        )
    else:
        said.append(f"Spearman between both: {named['agreement'].value:.3f}.")
    if "one_way_auc" in named:
        said.append(f"It still knows what has no way back: AUC {named['one_way_auc'].value:.3f}.")
    return " ".join(said)
