"""Chapter: each agent is held against the truth."""

from __future__ import annotations

from dataclasses import replace

from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage
from jepatlas.workflows.runs import certify_run

__all__ = ["CERTIFICATES"]


def _play(stage: Stage) -> Record:
    records = {name: certify_run(stage.agent(name), seed=stage.seed) for name in AGENT_NAMES}
    figures = [
        {
            **figure,
            "title": f"{name}: {figure['title'].lower()}",
            "panels": [{**p, "x": f"{name}_{p['x']}", "color": f"{name}_{p['color']}"} for p in figure["panels"]],
        }
        for name, record in records.items()
        for figure in record.figures
    ]
    return Record(
        "Certificates",
        " ".join(f"{name}: {record.summary}" for name, record in records.items()),
        provenance(stage.seed),
        tuple(replace(v, name=f"{name}.{v.name}") for name, record in records.items() for v in record.verdicts),
        tuple(figures),
        arrays={f"{name}_{k}": v for name, record in records.items() for k, v in record.arrays.items()},
    )


CERTIFICATES = Chapter("certificates", "Is each latent space the world's own coordinates?", _play)
