"""Chapter: each agent is held against the truth."""

from __future__ import annotations

from dataclasses import replace

from jepatlas.core.figures import Figure, Scatter, as_figure
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage
from jepatlas.workflows.runs import certify_run

__all__ = ["CERTIFICATES"]


def _play(stage: Stage) -> Record:
    records = {name: certify_run(stage.agent(name), seed=stage.seed) for name in AGENT_NAMES}
    figures = [_renamed(name, as_figure(figure)) for name, record in records.items() for figure in record.figures]
    return Record(
        "Certificates",
        " ".join(f"{name}: {record.summary}" for name, record in records.items()),
        provenance(stage.seed),
        tuple(replace(v, name=f"{name}.{v.name}") for name, record in records.items() for v in record.verdicts),
        tuple(figures),
        arrays={f"{name}_{k}": v for name, record in records.items() for k, v in record.arrays.items()},
    )


def _renamed(name: str, figure: Figure) -> Scatter:
    """The figure of one agent, with the names that its arrays have in the record of all."""
    if not isinstance(figure, Scatter):
        raise TypeError(f"A certificate has scatter plots only, but '{figure.title}' is of kind '{figure.kind}'.")
    panels = [replace(panel, x=f"{name}_{panel.x}", color=f"{name}_{panel.color}") for panel in figure.panels]
    return replace(figure, title=f"{name}: {figure.title.lower()}", panels=panels)


CERTIFICATES = Chapter("certificates", "Is each latent space the world's own coordinates?", _play)
