"""Audits of files: a matrix of energies, with its repair, or a saved energy at given points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.energy.audit import AXIOMS, Audit, Repair, audit, repair
from jepatlas.workflows.energy.energy_figures import audit_figures
from jepatlas.workflows.energy.energy_files import load_energy_file

__all__ = ["audit_file", "audit_record", "audit_saved", "audit_summary", "matrix_name"]


def audit_file(
    path: Path,
    *,
    states: int,
    seed: int,
    tolerance: float | None = None,
    points: Path | None = None,
    repaired: Path | None = None,
) -> Record:
    """Audit the matrix of energies in a file.

    `points` is a file with the positions of its rows and columns. With `repaired`, the closure of the matrix is written
    there, together with the other arrays of the file.
    """
    arrays = read_arrays(path, keep_half=True)
    name = matrix_name(path, arrays)
    energies = arrays[name]
    known = arrays if points is None else arrays | _read_points(points)
    if repaired is not None and len(arrays) > 1 and repaired.suffix.lower() == ".npy":
        raise InputError(f"{repaired} can hold one array only, but there are {', '.join(arrays)}. Use a .npz file.")
    try:
        found = audit(
            energies, known.get("points"), truth=known.get("truth"), states=states, tolerance=tolerance, seed=seed
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    summary = audit_summary(found)
    if repaired is not None:
        result = repair(energies)
        others = {other: array for other, array in arrays.items() if other != name}
        write_arrays(repaired, {"energies": result.energies} | others)
        summary = f"{summary} {_repair_sentence(result)}"
    return audit_record(path.name, found, summary, len(energies), seed)


def audit_saved(path: Path, points: Path, *, states: int, seed: int, tolerance: float | None = None) -> Record:
    """Audit a saved energy at the points of a file, which may also hold the `truth` between them."""
    saved = load_energy_file(path)
    given = _read_points(points)
    rows, truth = given["points"], given.get("truth")
    if rows.ndim != 2 or rows.shape[1] != saved.dim:
        raise InputError(f"{points}: the points must be (n, {saved.dim}) for this energy, but are {rows.shape}.")
    if truth is not None and saved.spec.discount is not None:
        raise InputError(
            f"{points} has a 'truth', but the energy is discounted (γ = {saved.spec.discount:g}), so they have "
            "different scales. Remove the truth, or audit the run, which stores the cost of a step."
        )
    try:
        found = audit(
            saved.model(), rows.astype(np.float32), truth=truth, states=states, tolerance=tolerance, seed=seed
        )
    except InputError as error:
        raise InputError(f"{points}: {error}") from error
    return audit_record(path.name, found, audit_summary(found), len(rows), seed)


def audit_record(name: str, found: Audit, summary: str, count: int, seed: int) -> Record:
    about = provenance(seed) | {"states": len(found.states), "of": count}
    return Record(f"Audit of {name}", summary, about, found.verdicts, audit_figures(found, Path(name).stem))


def _read_points(path: Path) -> dict[str, np.ndarray]:
    """The `points` of a file, or its latents `h`, or its only array; and its `truth`, if any."""
    arrays = read_arrays(path, keep_half=True)
    names = [name for name in ("points", "h") if name in arrays]
    if len(arrays) == 1:
        names += arrays
    if not names:
        raise InputError(f"{path} must hold the points as 'points' or 'h', but holds {', '.join(arrays)}.")
    found = {"points": arrays[names[0]]}
    if "truth" in arrays:
        found["truth"] = arrays["truth"]
    return found


def matrix_name(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    if len(arrays) == 1:
        return next(iter(arrays))
    if "energies" not in arrays:
        raise InputError(
            f"{path} must hold the matrix as 'energies', next to 'points' and 'truth', but holds {', '.join(arrays)}."
        )
    return "energies"


def audit_summary(found: Audit) -> str:
    summary = f"On {found.checked} states this is {found.kind}."
    if found.detectable:
        summary += (
            " All entries were checked; the triangle inequality on drawn pairs, where violations in more than "
            f"{100 * found.detectable:.2g}% of the pairs would have been seen."
        )
    others = [name for name in found.failed if name not in AXIOMS]
    return f"{summary} Failed: {', '.join(others)}." if others else summary


def _repair_sentence(result: Repair) -> str:
    return (
        f"Its closure, the largest quasimetric below it, changes {result.share:.1%} of the entries, by "
        f"{result.mean:.3g} on average and {result.largest:.3g} at most, and makes {result.opened} infinite entries "
        "finite."
    )
