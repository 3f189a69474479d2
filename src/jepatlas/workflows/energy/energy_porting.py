"""Porting an energy to another model through a linear map, and its evaluation there.

The source energy on its own latents and the ported energy on the other model's latents are evaluated on the same
states, which were not used to fit the map. Both are compared with the exact energies if these are known, and with each
other otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.alignment import PairedLatents, split_rows, time_blocks
from jepatlas.alignment.maps import Conditioning
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit import Audit, audit
from jepatlas.energy.audit.weighted_statistics import WeightedRanks, weighted_spearman
from jepatlas.workflows.align import MapKind, fit_map
from jepatlas.workflows.energy.energy_figures import audit_figures
from jepatlas.workflows.energy.energy_files import SavedEnergy
from jepatlas.workflows.energy.fitted_energy import all_pairs

__all__ = ["MigratedEnergy", "Ported", "migrate_energy", "port_energy"]

LOSS_ALLOWED = 0.02
AGREEMENT_NEEDED = 0.95


@dataclass(frozen=True)
class Ported:
    """A ported energy and its evaluation."""

    saved: SavedEnergy
    record: Record
    audit: Audit
    energies: np.ndarray  # (n, n) on the other model's latents


@dataclass(frozen=True)
class MigratedEnergy:
    """A ported energy, the map from the target's to the source's latents, and the record of both."""

    saved: SavedEnergy
    map: LinearMap
    record: Record


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
    """Port an energy from model A to model B; `source` and `target` are their latents of the same held-out states."""
    ported = saved.ported(to_source)
    found = audit(ported.model(), target.astype(np.float32), truth=truth, states=len(target), seed=seed)
    source_energies = all_pairs(saved.model(), source)
    ported_energies = all_pairs(ported.model(), target)
    estimates = _rank_correlations(source_energies, ported_energies, truth, seed)
    verdicts = (*found.verdicts, *_judge(estimates))
    record = Record(
        f"Energy of {names[0]} ported to {names[1]}",
        _summary(found, estimates, names),
        provenance(seed) | {"states": len(target)},
        verdicts,
        audit_figures(found, "ported"),
    )
    return Ported(ported, record, found, ported_energies)


def migrate_energy(
    pairs: PairedLatents,
    saved: SavedEnergy,
    kind: MapKind = "ridge",
    *,
    seed: int = 0,
    blocks: int | None = None,
    share: float = 0.5,
    states: int = 256,
) -> MigratedEnergy:
    """Fit a map on some rows of paired latents, port an energy on a's latents to b's, and evaluate it on other rows.

    At most `states` of the held-out rows are used for the evaluation.
    """
    a, b = pairs.a, pairs.b
    if saved.dim != a.h.shape[1]:
        raise InputError(f"The energy takes {saved.dim} dimensions, but the latents of {a.name} have {a.h.shape[1]}.")
    rng = numpy_generator(seed, "migrate split")
    split = split_rows(len(a.h), rng, groups=pairs.groups, blocks=blocks, share=share)
    groups = pairs.groups if blocks is None else time_blocks(len(a.h), blocks)
    rows = split.fit
    fitted = fit_map(kind, b.h[rows], a.h[rows], None if groups is None else groups[rows])
    held = np.sort(numpy_generator(seed, "migrate states").permutation(split.score)[:states])
    ported = port_energy(saved, fitted.map_, a.h[held], b.h[held], names=(a.name, b.name), seed=seed)
    record = ported.record
    about = {"map": kind, "pairs fitted": len(rows), "pairs held out": len(split.score)}
    record = replace(
        record,
        summary=" ".join([record.summary, *pairs.left_out_note]),
        verdicts=(*record.verdicts, *Conditioning.of(fitted.map_, fitted.moments_).verdicts(len(rows))),
        provenance={**record.provenance, **about, **pairs.provenance},
    )
    return MigratedEnergy(ported.saved, fitted.map_, record)


def _rank_correlations(
    source: np.ndarray, ported: np.ndarray, truth: np.ndarray | None, seed: int
) -> dict[str, Estimate]:
    """Spearman correlations with intervals over states.

    `agreement` is between both energies. With a truth, `spearman_source` is that of the source energy, and
    `spearman_lost` how much less the ported energy has.
    """
    others = ~np.eye(len(source), dtype=bool)
    exact = source if truth is None else truth
    known = others & np.isfinite(exact)
    source_ranks, ported_ranks = WeightedRanks(source[known]), WeightedRanks(ported[known])
    true_ranks = WeightedRanks(exact[known])

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)[known]
        values = {"agreement": weighted_spearman(source_ranks, ported_ranks, pairs)}
        if truth is not None:
            of_source = weighted_spearman(true_ranks, source_ranks, pairs)
            of_ported = weighted_spearman(true_ranks, ported_ranks, pairs)
            values |= {"spearman_source": of_source, "spearman_lost": of_source - of_ported}
        return values

    return bootstrap(statistic, len(source), numpy_generator(seed, "porting"), replicates=200)


def _judge(estimates: Mapping[str, Estimate]) -> list[Verdict]:
    verdicts = [
        Verdict.judge(
            "agreement",
            estimates["agreement"],
            direction="higher",
            threshold=AGREEMENT_NEEDED,
            null=0.0,
            good="Both energies order pairs of states alike.",
            bad="The energies order pairs of states differently: the map loses information. Fit it on more states.",
        )
    ]
    if "spearman_lost" in estimates:
        verdicts += [
            Verdict.judge(
                "spearman_source",
                estimates["spearman_source"],
                direction="higher",
                null=0.0,
                good="The correlation of the energy with the truth on the model it was learned on.",
            ),
            Verdict.judge(
                "spearman_lost",
                estimates["spearman_lost"],
                direction="lower",
                threshold=LOSS_ALLOWED,
                null=0.0,
                good="Porting loses little accuracy.",
                bad="Porting loses accuracy, because the map does not preserve all information the energy uses.",
            ),
        ]
    return verdicts


def _summary(found: Audit, estimates: Mapping[str, Estimate], names: tuple[str, str]) -> str:
    sentences = [f"On {names[1]} the energy learned on {names[0]} is {found.kind}."]
    if "spearman_source" in estimates:
        sentences.append(
            f"Spearman correlation with the truth, without training: {estimates['spearman_source'].value:.3f} on "
            f"{names[0]}, {found['spearman'].value:.3f} on {names[1]}."
        )
    else:
        sentences.append(f"Spearman correlation between both: {estimates['agreement'].value:.3f}.")
    if "one_way_auc" in found:
        sentences.append(f"AUC on one-way pairs: {found['one_way_auc'].value:.3f}.")
    return " ".join(sentences)
