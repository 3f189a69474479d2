"""Chapter: one world, seen through two mixings, and two agents that never meet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.recipes import Recipe, recipe_text
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage
from jepatlas.training import Job, SweepProgress, SweepResult, TrainingConfig, local_processes, sweep
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["AGENTS", "recipes"]


def recipes(seed: int) -> dict[str, Recipe]:
    """Ada sees the world through a spiral, Ben through coupling layers; they share its law and nothing else."""
    law = OrnsteinUhlenbeck(dim=2, rho=0.95)
    ada = Recipe(seed=2 * seed, world=LatentWorld(law, Spiral()), training=TrainingConfig(steps=6000))
    ben = replace(ada, seed=2 * seed + 1, world=LatentWorld(law, Coupling(seed=1)))
    return dict(zip(AGENT_NAMES, (ada, ben), strict=True))


def _play(stage: Stage) -> Record:
    chosen = recipes(stage.seed)
    stage.console.print("Training two LeJEPA agents, each in a process of its own (about a minute).", highlight=False)
    jobs = [Job(name, to_plain(recipe)) for name, recipe in chosen.items()]
    with SweepProgress(stage.console, {stage.agent(name): recipe.training.steps for name, recipe in chosen.items()}):
        results = sweep(jobs, train_job, stage.folder / "agents", local_processes(stage.workers))
    rows = [[r.name, chosen[r.name].world.mixing.kind, chosen[r.name].seed, _steps(r)] for r in results]
    return Record(
        "Two agents",
        "One two-dimensional world is seen through two different nonlinear mixings. Each agent is trained on its own "
        "view alone: no data, no weights and no seeds are shared.",
        provenance(stage.seed),
        figures=(_losses(stage),),
        about={"recipe": "\n".join(f"# {name}\n{recipe_text(recipe)}" for name, recipe in chosen.items())},
        tables=({"title": "The agents", "columns": ["agent", "sees through", "seed", "steps"], "rows": rows},),
    )


def _losses(stage: Stage) -> dict[str, Any]:
    series = []
    for name in AGENT_NAMES:
        lines = [json.loads(line) for line in (stage.agent(name) / "metrics.jsonl").read_text().splitlines()]
        series.append({"name": name, "x": [line["step"] for line in lines], "y": [line["loss"] for line in lines]})
    return {
        "kind": "curves",
        "title": "Training loss of both agents",
        "x_label": "step",
        "y_label": "loss",
        "series": series,
        "log_y": True,
    }


def _steps(result: SweepResult) -> int:
    if result.status != "finished":
        reasons = [result.record.get("error"), *(verdict["advice"] for verdict in result.record.get("verdicts", []))]
        raise InputError(f"Agent {result.name} did not finish. {' '.join(filter(None, reasons))}")
    return result.record["step"]


AGENTS = Chapter("agents", "Two agents that never meet", _play)
