"""Charts of an atlas from files: latents, ids of their states, and certificates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import CertificateSummary, Chart, ChartLatents, Latents
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json
from jepatlas.core.records import Estimate, Verdict
from jepatlas.workflows.align.latent_files import check_ids, model_names, read_latents

__all__ = ["certificate_summary", "chart_latents", "not_identified_note", "read_certificate", "read_charts"]


def read_charts(
    paths: Sequence[Path],
    certificates: Sequence[Path] = (),
    *,
    ids: Sequence[Path] = (),
    groups: Sequence[Path] = (),
) -> list[ChartLatents]:
    """Charts from files of latents. Certificates, ids and groups are given for every chart, in this order, or not."""
    for what, files in {"certificates": certificates, "files of ids": ids, "files of groups": groups}.items():
        if files and len(files) != len(paths):
            raise InputError(f"There are {len(paths)} charts, but {len(files)} {what}: give one for each.")
    latents: list[Latents] = []
    for number, (path, name) in enumerate(zip(paths, model_names(paths), strict=True)):
        id_file = ids[number] if ids else None
        group_file = groups[number] if groups else None
        latents.append(read_latents(path, name=name, ids=id_file, groups=group_file))
    if any(one.ids is None for one in latents) and len({len(one.h) for one in latents}) > 1:
        rows = ", ".join(f"{one.name} has {len(one.h)} rows" for one in latents)
        raise InputError(f"{rows}, and not all have ids, so their rows cannot be paired. Store ids as 'ids'.")
    check_ids(*latents)
    charts: list[ChartLatents] = []
    for number, one in enumerate(latents):
        certificate = read_certificate(certificates[number], one) if certificates else None
        charts.append(chart_latents(one, certificate))
    return charts


def chart_latents(latents: Latents, certificate: CertificateSummary | None = None) -> ChartLatents:
    """Latents as a chart. Without ids, rows are numbered: all charts must then show the same states in one order."""
    ids = np.arange(len(latents.h)) if latents.ids is None else latents.ids
    return ChartLatents(latents.name, latents.h, ids, certificate, groups=latents.groups)


def certificate_summary(verdicts: Iterable[Verdict], passed: bool | None = True) -> CertificateSummary | None:
    """The tighter of the bounds for raw and for whitened latents; None without a bound.

    A bound assumes a world that other verdicts may contradict, so it identifies nothing unless the certificate as a
    whole has `passed`.
    """
    bounds = [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]
    if not bounds:
        return None
    best = min(bounds, key=lambda verdict: verdict.high)
    estimate = Estimate(best.value, best.low, best.high, best.n)
    return CertificateSummary(estimate, _all_passed(best.passed, passed), whitened=best.name == "bound_whitened")


def read_certificate(path: Path, of: Latents | None = None) -> CertificateSummary:
    """Summary of a record of `jepatlas certify` (`--out` or `--json`); with `of`, the widths must match."""
    record = read_json(path)
    verdicts = record.get("verdicts") if isinstance(record, dict) else None
    if not isinstance(verdicts, list):
        raise InputError(f"{path} is not a certificate: it has no list of verdicts. Write one with jepatlas certify.")
    width = _part(record, "provenance").get("latent_dim")
    if of is not None and width not in (None, of.h.shape[1]):
        raise InputError(
            f"{path} is a certificate of latents with {width} dimensions, but {of.name} has {of.h.shape[1]}. Certify "
            "the latents of this chart."
        )
    found = certificate_summary(map(Verdict.from_json, verdicts), _record_passed(record))
    if found is None:
        raise InputError(f"{path} has no bound, because it was made without a rate ρ. Certify with a rate.")
    return found


def not_identified_note(charts: Iterable[Chart]) -> str:
    """Which charts have certificates that do not pass, and what follows; empty if there are none."""
    reasons = {
        False: "its certificate, or the bound in it, does not pass",
        None: "its certificate, or the bound in it, is undecided",
    }
    names: list[str] = []
    for chart in charts:
        if chart.certificate is not None and not chart.certificate.identified:
            names.append(f"{chart.name} ({reasons[chart.certificate.identified]})")
    if not names:
        return ""
    return (
        f"Not identified: {', '.join(names)}. Limits on maps are predicted only between charts whose certificates "
        "pass. The summary of a certificate says what it lacks."
    )


def _record_passed(record: Mapping[str, Any]) -> bool | None:
    """Whether the certificate passes and its diagnosis, if the truth was known, is a rotation."""
    kind = _part(record, "diagnosis").get("kind", "rotation")
    rotation = None if kind == "undecided" else kind == "rotation"
    return _all_passed(record.get("passed", True), rotation)


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a record; empty if it is missing or None."""
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _all_passed(*passed: bool | None) -> bool | None:
    """False if any is False, else None if any is None, else True."""
    if False in passed:
        return False
    return None if None in passed else True
