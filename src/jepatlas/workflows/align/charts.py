"""Charts of an atlas, from files: a model's latents, the ids of its states, and its certificate where it has one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import CertificateSummary, Chart, ChartLatents
from jepatlas.alignment.paired import Latents
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json
from jepatlas.core.records import Estimate, Verdict

__all__ = ["certificate_summary", "certificates_said", "chart_latents", "read_certificate"]


def chart_latents(latents: Latents, certificate: CertificateSummary | None = None) -> ChartLatents:
    """Rows without ids are numbered: then all charts must show the same states in the same order."""
    ids = np.arange(len(latents.h)) if latents.ids is None else latents.ids
    return ChartLatents(latents.name, latents.h, ids, certificate, groups=latents.groups)


def certificate_summary(verdicts: Iterable[Verdict], passed: bool | None = True) -> CertificateSummary | None:
    """The tighter of the two bounds, of latents as they are and whitened; None where no bound was given.

    A bound presumes a world that the other verdicts may speak against, so it identifies nothing where the certificate
    as a whole has not `passed`.
    """
    bounds = [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]
    if not bounds:
        return None
    best = min(bounds, key=lambda verdict: verdict.high)
    estimate = Estimate(best.value, best.low, best.high, best.n)
    return CertificateSummary(estimate, _both(best.passed, passed), whitened=best.name == "bound_whitened")


def read_certificate(path: Path, of: Latents | None = None) -> CertificateSummary:
    """Of a record that `jepatlas certify` wrote (`--out` or `--json`), for latents as wide as those it speaks `of`."""
    record = read_json(path)
    verdicts = record.get("verdicts") if isinstance(record, dict) else None
    if not isinstance(verdicts, list):
        raise InputError(f"{path} is not a certificate: it has no list of verdicts. Write one with jepatlas certify.")
    width = _part(record, "provenance").get("latent_dim")
    if of is not None and width not in (None, of.h.shape[1]):
        raise InputError(
            f"{path} is a certificate of latents of {width} dimensions, but {of.name} has "
            f"{of.h.shape[1]}. Certify the model that the chart is of."
        )
    found = certificate_summary(map(Verdict.from_json, verdicts), _passed(record))
    if found is None:
        raise InputError(f"{path} has no bound: it was made without a rate ρ, so no limit on maps follows from it.")
    return found


def certificates_said(charts: Iterable[Chart]) -> str:
    """Of which charts the certificates identify nothing, and what follows; nothing where they all do."""
    given = {chart.name: chart.certificate.identified for chart in charts if chart.certificate is not None}
    why = {
        False: "its certificate, or the bound in it, does not pass",
        None: "its certificate, or the bound in it, is undecided, which is no pass",
    }
    said = [f"{name} ({why[identified]})" for name, identified in given.items() if not identified]
    if not said:
        return ""
    return (
        f"Not identified: {', '.join(said)}. Limits on maps are predicted only between charts whose certificates "
        "pass, so none are shown for others. The summary of a certificate says what it lacks."
    )


def _passed(record: Mapping[str, Any]) -> bool | None:
    """Whether the certificate passes, and, where the truth was known, the diagnosis is a rotation of it."""
    kind = _part(record, "diagnosis").get("kind", "rotation")
    fine = None if kind == "undecided" else kind == "rotation"
    return _both(record.get("passed", True), fine)


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Empty where the record does not have it: a diagnosis needs the truth."""
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _both(one: bool | None, other: bool | None) -> bool | None:
    """False where one is, and undecided where one is that."""
    return False if False in (one, other) else None if None in (one, other) else True
