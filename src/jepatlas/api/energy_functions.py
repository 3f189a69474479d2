"""`audit` and `fit_energy` for energies and steps in memory or in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.console import Console

from jepatlas.api.inputs import as_array, as_column, as_folder, as_matrix, as_path
from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, check_count, did_you_mean
from jepatlas.data import experience_from_arrays
from jepatlas.energy import HeadConfig, LeastActionConfig
from jepatlas.energy.audit import Repair, repair
from jepatlas.energy.audit import audit as audit_energy
from jepatlas.recipes import EnergyRecipe, EnergyWorld, StepFile, gather_experience
from jepatlas.results import Result
from jepatlas.workflows.energy import (
    EnergyEvaluation,
    SavedEnergy,
    audit_file,
    audit_record,
    audit_saved,
    audit_summary,
    evaluate_run,
    ground_truth_of,
    is_energy_file,
    matrix_name,
)
from jepatlas.workflows.runs import start_run

__all__ = ["EnergyAudit", "audit", "fit_energy"]

STEPS = "steps.npz"


@dataclass(frozen=True, repr=False)
class EnergyAudit(Result):
    """An audit of an energy; `energies` is the matrix that was audited, if it is one."""

    energies: np.ndarray | None = None  # (n, n)

    record_name: ClassVar[str] = "audit"

    def repair(self) -> Repair:
        """The closure of the matrix: the largest quasimetric below it."""
        if self.energies is None:
            raise InputError(
                "Only a matrix of energies can be repaired. This audit has none: it is of a function, or was loaded."
            )
        return repair(self.energies)


def audit(
    energies: Any,
    points: Any = None,
    *,
    truth: Any = None,
    states: int = 256,
    tolerance: float | None = None,
    seed: int = 0,
    title: str = "energies",
) -> EnergyAudit | EnergyEvaluation:
    """Test whether an energy is a quasimetric, and compare it with the `truth`, as `jepatlas energy audit` does.

    `energies` is a square matrix, E from row to column (numpy, torch or pandas; unreachable pairs are inf), a function
    of two arrays of rows, a loaded energy, or the path of any of these. A function needs the `points` (n, d) to
    evaluate it at. The path of a run of `fit_energy` is evaluated at its own states.

    >>> x = np.random.default_rng(0).standard_normal((50, 2))
    >>> result = audit(lambda x, y: ((x - y) ** 2).sum(-1), x)
    >>> result.passed, result["triangle"].passed
    (False, False)
    """
    check_count("states", states, 2)
    path = as_path("energies", energies)
    sample: dict[str, Any] = {"states": states, "seed": seed, "tolerance": tolerance}
    if path is not None and path.is_dir():
        if points is not None or truth is not None:
            raise InputError(
                "'points' and 'truth' must not be given for a run: it is audited at states of its own source."
            )
        return evaluate_run(path, seed=seed, tolerance=tolerance)
    if path is not None and truth is None and (points is None or as_path("points", points) is not None):
        return _audit_file(path, None if points is None else Path(points), sample)
    if path is not None:
        raise InputError(f"'points' and 'truth' of the file {path} must be in files, too. Or read it first.")
    positions = None if points is None else as_matrix("points", points).rows
    exact = None if truth is None else as_array("truth", truth)
    energy = _energy(energies, positions)
    if isinstance(energies, SavedEnergy) and positions is not None:
        positions = positions.astype(np.float32)
    found = audit_energy(energy, positions, truth=exact, **sample)
    matrix = energy if isinstance(energy, np.ndarray) else None
    count = len(matrix) if positions is None and matrix is not None else len(positions)  # pyright: ignore[reportArgumentType]
    return EnergyAudit(audit_record(title, found, audit_summary(found), count, seed), matrix)


def _audit_file(path: Path, points: Path | None, sample: dict[str, Any]) -> EnergyAudit:
    if not is_energy_file(path):
        record = audit_file(path, points=points, **sample)
        arrays = read_arrays(path, keep_half=True)
        return EnergyAudit(record, arrays[matrix_name(path, arrays)])
    if points is None:
        raise InputError(f"{path} is a saved energy: give the 'points' to audit it at.")
    return EnergyAudit(audit_saved(path, points, **sample))


def _energy(energies: Any, points: np.ndarray | None) -> Any:
    """A matrix, or a function of rows."""
    if isinstance(energies, SavedEnergy):
        if points is not None and points.shape[1] != energies.dim:
            raise InputError(f"'points' must have {energies.dim} columns for this energy, but have {points.shape[1]}.")
        energies = energies.model()
    if callable(energies) and not hasattr(energies, "detach"):
        if points is None:
            raise InputError("'points' are missing: give the states at which the energy, a function, is audited.")
        return energies
    matrix = as_array("energies", energies, keep_half=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"'energies' must be a square matrix, E from row to column, but has shape {matrix.shape}.")
    return matrix


def fit_energy(
    source: Any,
    out: Path | str,
    *,
    head: str | HeadConfig | None = None,
    steps: int | None = None,
    seed: int | None = None,
    recipe: EnergyRecipe | None = None,
    least_action: bool = False,
    console: Console | None = None,
) -> EnergyEvaluation:
    """Learn the cost of going from one state to another, as `jepatlas energy fit` does, in the run folder `out`.

    `source` holds x, x_next and cost for each step, or x, episode and cost for each state, as a mapping of arrays or
    the path of a file; `x` and `cost` may be lists with one array for each episode. It may also hold `points` and, for
    each pair of them, the `truth`. A world, such as `OneWayGrid()`, is explored by random walks. `head` is the name of
    a head ("iqe", "mrn", ...), `steps` the number of training steps; a `recipe` holds all other settings. With
    `least_action` nothing is trained: the energy is computed from the steps.

    The learned energy is `result.fitted`: `result.fitted.between(x, y)`.
    """
    folder = as_folder("out", out)
    base = recipe or EnergyRecipe()
    base = replace(base, seed=base.seed if seed is None else seed, head=_head(head, base.head))
    if least_action:
        base = replace(base, learning=LeastActionConfig())
    if steps is not None:
        check_count("steps", steps)
        base = replace(base, training=replace(base.training, steps=steps))
    path = as_path("source", source)
    if path is not None:
        base = replace(base, source=StepFile(str(path)).sealed())
    elif isinstance(source, EnergyWorld):
        base = replace(base, source=source)
    else:
        base = replace(base, source=StepFile(str(folder / STEPS)))
        _write_steps(source, folder)
        base = replace(base, source=StepFile(str(folder / STEPS)).sealed())
    gather_experience(base)  # unusable steps are refused before training
    ground_truth_of(base)
    start_run(base, folder, console)
    return evaluate_run(folder)


def _head(given: str | HeadConfig | None, default: HeadConfig) -> HeadConfig:
    if given is None:
        return default
    if isinstance(given, str):
        known = choices(HeadConfig)
        if given not in known:
            raise InputError(f"head is '{given}', which is unknown. {did_you_mean(given, known)}")
        return known[given]()
    if not hasattr(given, "build"):
        raise InputError(f"'head' must be a name or a configuration of a head, not a {type(given).__name__}.")
    return given


def _write_steps(source: Any, folder: Path) -> None:
    """Write the steps to the run folder, so that the run can be resumed and evaluated again."""
    if not isinstance(source, Mapping):
        raise InputError(
            f"'source' must be a mapping of arrays (x, x_next, cost), a path or a world, not a {type(source).__name__}."
        )
    arrays = _step_arrays(source)
    experience_from_arrays(arrays)
    if (folder / "recipe.yaml").exists():
        raise InputError(f"'out': {folder} already contains a run. Choose another folder.")
    write_arrays(folder / STEPS, arrays)


def _step_arrays(source: Mapping[str, Any]) -> dict[str, np.ndarray]:
    given = {str(name): value for name, value in source.items() if value is not None}
    if "x" not in given or "cost" not in given:
        raise InputError(f"'source' must hold 'x' and 'cost', but it holds {', '.join(given) or 'nothing'}.")
    x = as_matrix("x", given.pop("x"))
    arrays = {"x": x.rows}
    if x.lengths is not None:
        arrays["episode"] = np.repeat(np.arange(len(x.lengths)), x.lengths)
        given["cost"] = _joined_costs(given["cost"], x.lengths)
    if "episode" in given:
        if x.lengths is not None:
            raise InputError("'episode' must not be given with a list of episodes.")
        arrays["episode"] = as_column("episode", given.pop("episode"), len(x.rows))
    for name, value in given.items():
        matrix = name in ("x_next", "z", "z_next", "points")
        arrays[name] = as_matrix(name, value).rows if matrix else as_array(name, value)
    return arrays


def _joined_costs(costs: Any, lengths: tuple[int, ...]) -> np.ndarray:
    """The costs of a list of episodes, one for each row."""
    parts = [as_array(f"cost[{number}]", part) for number, part in enumerate(costs)]
    found = tuple(len(part) if part.ndim else 0 for part in parts)
    if found != lengths:
        raise InputError(f"'cost' must have one array for each episode of 'x', of lengths {lengths}, not {found}.")
    return np.concatenate(parts)
