"""Chapters: two agents that observe one world through different mixings, and their certificates."""

from __future__ import annotations

import json
from dataclasses import replace

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curve, Curves, Figure, Scatter, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.recipes import Recipe, recipe_text
from jepatlas.tour.stage import AGENT_NAMES, Chapter, Stage
from jepatlas.training import Job, SweepProgress, SweepResult, TrainingConfig, local_processes, sweep
from jepatlas.workflows.runs import certify_run, train_job
from jepatlas.worlds import Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["AGENTS", "CERTIFICATES", "recipes"]


def recipes(seed: int) -> dict[str, Recipe]:
    """Ada observes the world through a spiral, Ben through coupling layers. Only the law of the world is shared."""
    law = OrnsteinUhlenbeck(dim=2, rho=0.95)
    ada = Recipe(seed=2 * seed, world=LatentWorld(law, Spiral()), training=TrainingConfig(steps=6000))
    ben = replace(ada, seed=2 * seed + 1, world=LatentWorld(law, Coupling(seed=1)))
    return dict(zip(AGENT_NAMES, (ada, ben), strict=True))


def _play_agents(stage: Stage) -> Record:
    chosen = recipes(stage.seed)
    stage.console.print("Training two LeJEPA agents in separate processes (about a minute).", highlight=False)
    jobs = [Job(name, to_plain(recipe)) for name, recipe in chosen.items()]
    with SweepProgress(stage.console, {stage.agent(name): recipe.training.steps for name, recipe in chosen.items()}):
        results = sweep(jobs, train_job, stage.folder / "agents", local_processes(stage.workers))
    rows = [[r.name, chosen[r.name].world.mixing.kind, chosen[r.name].seed, _steps(r)] for r in results]
    return Record(
        "Two agents",
        "A two-dimensional world is observed through two different nonlinear mixings. Each agent is trained on its own "
        "observations. Data, weights and seeds are not shared.",
        provenance(stage.seed),
        figures=(_losses(stage),),
        about={"recipe": "\n".join(f"# {name}\n{recipe_text(recipe)}" for name, recipe in chosen.items())},
        tables=(Table("The agents", ["agent", "mixing", "seed", "steps"], rows),),
    )


def _losses(stage: Stage) -> Curves:
    series = []
    for name in AGENT_NAMES:
        lines = [json.loads(line) for line in (stage.agent(name) / "metrics.jsonl").read_text().splitlines()]
        series.append(Curve(name, [line["step"] for line in lines], [line["loss"] for line in lines]))
    title = "Training loss of both agents"
    return Curves(title=title, x_label="step", y_label="loss", log_y=True, series=series)


def _steps(result: SweepResult) -> int:
    if result.status != "finished":
        reasons = [result.record.get("error"), *(verdict["advice"] for verdict in result.record.get("verdicts", []))]
        raise InputError(f"Agent {result.name} did not finish. {' '.join(filter(None, reasons))}")
    return result.record["step"]


def _play_certificates(stage: Stage) -> Record:
    records = {name: certify_run(stage.agent(name), seed=stage.seed) for name in AGENT_NAMES}
    verdicts = []
    figures = []
    arrays = {}
    for name, record in records.items():
        verdicts += [replace(verdict, name=f"{name}.{verdict.name}") for verdict in record.verdicts]
        figures += [_prefixed(name, figure) for figure in record.figures]
        arrays |= {f"{name}_{key}": array for key, array in record.arrays.items()}
    return Record(
        "Certificates",
        " ".join(f"{name}: {record.summary}" for name, record in records.items()),
        provenance(stage.seed),
        tuple(verdicts),
        tuple(figures),
        arrays=arrays,
    )


def _prefixed(name: str, figure: Figure) -> Scatter:
    """A figure of one agent, with the array names of the joint record."""
    if not isinstance(figure, Scatter):
        raise TypeError(f"A certificate has scatter plots only, but '{figure.title}' is of kind '{figure.kind}'.")
    panels = []
    for panel in figure.panels:
        labels = {"label": panel.label or panel.x, "color_label": panel.color_label or panel.color}
        panels.append(replace(panel, x=f"{name}_{panel.x}", color=f"{name}_{panel.color}", **labels))
    return replace(figure, title=f"{name}: {figure.title.lower()}", panels=panels)


AGENTS = Chapter("agents", "Two agents that never meet", _play_agents)
CERTIFICATES = Chapter("certificates", "Is each latent space the world's own coordinates?", _play_certificates)
