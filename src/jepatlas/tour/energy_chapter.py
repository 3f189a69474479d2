"""Chapter: energies of a plane with a one-way wall, learned on Ada's latents and carried to Ben.

Two energies are learned from random steps: one with a quasimetric head (IQE), one with the L2 distance, which is
symmetric. The first is then carried to Ben through the map, without training. Because Ben's mapped latents have small
errors, the energies are learned with jitter: steps are shifted by up to a part of a cell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from jepatlas.alignment import load_atlas, save_atlas
from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Landscape
from jepatlas.core.linear import least_squares
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.energy import L2Config, graph_energies
from jepatlas.recipes import EnergyRecipe, StepFile
from jepatlas.tour.stage import AGENT_NAMES, Chapter, Stage, shared_states
from jepatlas.training import Job, SweepProgress, local_processes, sweep
from jepatlas.workflows.energy import EnergyEvaluation, Ported, attach_energy, evaluate_run, port_energy, save_energy
from jepatlas.workflows.energy.energy_figures import audit_figures, choose_goal, grid_of, landscape
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import OneWayGrid

__all__ = ["ENERGY", "recipes"]

WORLD = OneWayGrid()
SPAN = 1.5  # half-width of the grid in the plane, where the agents have most data
EPISODES = 1000
LENGTH = 50
JITTER = 0.35  # of a cell: more than the errors of the map, and less than the half at which the wall blurs
REPORTED = {"iqe": ("one_way_auc", "spearman", "calibration_error", "triangle"), "l2": ("one_way_auc", "spearman")}


def recipes(seed: int, steps: StepFile) -> dict[str, EnergyRecipe]:
    """Two recipes that differ in the head only."""
    iqe = EnergyRecipe(seed=seed, source=steps, jitter=JITTER)
    return {"iqe": iqe, "l2": replace(iqe, head=L2Config())}


def _play(stage: Stage) -> Record:
    stage.console.print("Learning two energies from random steps in separate processes.", highlight=False)
    truth = graph_energies(WORLD.graph)
    ada, ben = (_latents(stage, name) for name in AGENT_NAMES)
    judged = _learn(stage, _steps(stage, ada, truth))
    iqe = judged["iqe"]
    shared = shared_states(stage)
    ada_shared, ben_shared = (h[shared.split.fit] for h in shared.latents)
    to_ada = least_squares(ben_shared, ada_shared)
    ported = port_energy(iqe.fitted.saved(), to_ada, ada, ben, truth=truth, names=("Ada", "Ben"), seed=stage.seed)
    save_energy(ported.saved, stage.folder / "energies" / "ben.safetensors")
    atlas = load_atlas(stage.folder / "atlas")
    save_atlas(attach_energy(atlas, "ada", "one-way", iqe.fitted.saved()), stage.folder / "atlas")
    arrays, figures = _landscapes(judged, ported, truth)
    return Record(
        "No way back",
        _summary(judged, ported),
        provenance(stage.seed) | {"states": len(truth)},
        tuple(_verdicts(judged, ported)),
        (*figures, *audit_figures(iqe.audit, "iqe")[1:]),
        arrays=arrays,
    )


def _latents(stage: Stage, name: str) -> np.ndarray:
    """An agent's latents of the grid's states."""
    recipe, objective = load_objective(stage.agent(name))
    z = torch.as_tensor(SPAN * WORLD.observe(WORLD.positions), dtype=torch.float32)
    with torch.no_grad():
        return objective.encode(recipe.world.observe(z)).double().numpy()


def _steps(stage: Stage, latents: np.ndarray, truth: np.ndarray) -> StepFile:
    """Random walks in Ada's latents, as a file of steps like any user's."""
    walk = WORLD.walk(EPISODES, LENGTH, stage.seed)
    number = {tuple(cell): state for state, cell in enumerate(WORLD.positions)}
    assert walk.z is not None and walk.z_next is not None
    before, after = (latents[[number[tuple(cell)] for cell in cells]] for cells in (walk.z, walk.z_next))
    path = stage.folder / "energies" / "ada_steps.npz"
    arrays = {"x": before, "x_next": after, "cost": walk.cost, "episode": walk.episode, "points": latents}
    write_arrays(path, arrays | {"truth": truth})
    return StepFile(str(path)).sealed()


def _learn(stage: Stage, steps: StepFile) -> dict[str, EnergyEvaluation]:
    chosen = recipes(stage.seed, steps)
    place = stage.folder / "energies"
    with SweepProgress(stage.console, {place / name: recipe.training.steps for name, recipe in chosen.items()}):
        jobs = [Job(name, to_plain(recipe)) for name, recipe in chosen.items()]
        results = sweep(jobs, train_job, place, local_processes(stage.workers))
    for result in results:
        if result.status != "finished":
            raise InputError(f"The energy '{result.name}' was not learned. {result.record.get('error', '')}")
    return {name: evaluate_run(place / name, seed=stage.seed) for name in chosen}


def _summary(judged: dict[str, EnergyEvaluation], ported: Ported) -> str:
    iqe, l2 = (judged[name].audit for name in ("iqe", "l2"))
    lost = next(verdict for verdict in ported.record.verdicts if verdict.name == "spearman_lost")
    return (
        "A wall crosses the plane and can be passed in one direction only. The quasimetric energy (IQE) on Ada's "
        f"latents predicts that with AUC {iqe['one_way_auc'].value:.3f} on one-way pairs. Its Spearman correlation "
        f"with the exact cost is {iqe['spearman'].value:.3f}, its median ratio {iqe['median_ratio'].value:.2f}. The "
        f"L2 energy is symmetric and cannot predict it (AUC {l2['one_way_auc'].value:.3f}). Carried to Ben through the "
        f"map without training, the first has AUC {ported.audit['one_way_auc'].value:.3f} and is still a quasimetric; "
        f"its Spearman correlation decreases by {lost.value:.3f} [{lost.low:.3f}, {lost.high:.3f}]."
    )


def _verdicts(judged: dict[str, EnergyEvaluation], ported: Ported) -> list[Verdict]:
    verdicts = []
    for head, names in REPORTED.items():
        for name in names:
            verdict = replace(judged[head].audit[name], name=f"{head}.{name}")
            if verdict.name == "l2.one_way_auc":  # no failure, since a symmetric energy cannot pass
                verdict = replace(verdict, passed=None)
            verdicts.append(verdict)
    for verdict in ported.record.verdicts:
        if verdict.name in ("triangle", "one_way_auc", "spearman_lost"):
            verdicts.append(replace(verdict, name=f"ben.{verdict.name}"))
    return verdicts


def _landscapes(
    judged: dict[str, EnergyEvaluation], ported: Ported, truth: np.ndarray
) -> tuple[dict[str, np.ndarray], list[Landscape]]:
    """One figure for each energy, with panels to and from a goal."""
    goal = choose_goal(truth)
    row, column = WORLD.positions[goal]
    shown = {
        "Exact energy": truth,
        "Energy learned on Ada, IQE": judged["iqe"].energies,
        "Energy learned on Ada, L2": judged["l2"].energies,
        "Energy carried to Ben, IQE": ported.energies,
    }
    top = 1.5 * truth[np.isfinite(truth)].max()  # larger energies are clipped
    arrays = {}
    figures = []
    for title, matrix in shown.items():
        panels = []
        for way, values in (("to the goal", matrix[:, goal]), ("from the goal", matrix[goal])):
            arrays[f"{title}: {way}"] = grid_of(
                WORLD.positions, np.where(np.isinf(values), np.inf, values.clip(0, top))
            )
            panels.append((way, f"{title}: {way}"))
        figures.append(landscape(title, panels, {}, (column, row)))
    return arrays, figures


ENERGY = Chapter("energy", "Is there a way back?", _play)
