"""Charts of an atlas, from files: a model's latents, the ids of its states, and its certificate where it has one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from jepatlas.align import CertificateSummary, ChartLatents
from jepatlas.alignments.latents import Latents
from jepatlas.base.errors import InputError
from jepatlas.base.files import read_json
from jepatlas.base.records import Estimate, Verdict

__all__ = ["certificate_summary", "chart_latents", "read_certificate"]


def chart_latents(latents: Latents, certificate: CertificateSummary | None = None) -> ChartLatents:
    """Rows without ids are numbered: then all charts must show the same states in the same order."""
    ids = np.arange(len(latents.h)) if latents.ids is None else latents.ids
    return ChartLatents(latents.name, latents.h, ids, certificate, groups=latents.groups)


def certificate_summary(verdicts: Iterable[Verdict]) -> CertificateSummary | None:
    """The tighter of the two bounds, of latents as they are and whitened; None where no bound was given."""
    bounds = [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]
    if not bounds:
        return None
    best = min(bounds, key=lambda verdict: verdict.high)
    estimate = Estimate(best.value, best.low, best.high, best.n)
    return CertificateSummary(estimate, best.passed, whitened=best.name == "bound_whitened")


def read_certificate(path: Path) -> CertificateSummary:
    """Of a record that `jepatlas certify` wrote (`--out` or `--json`)."""
    record = read_json(path)
    verdicts = record.get("verdicts") if isinstance(record, dict) else None
    if not isinstance(verdicts, list):
        raise InputError(f"{path} is not a certificate: it has no list of verdicts. Write one with jepatlas certify.")
    found = certificate_summary(map(Verdict.from_json, verdicts))
    if found is None:
        raise InputError(f"{path} has no bound: it was made without a rate ρ, so no limit on maps follows from it.")
    return found
