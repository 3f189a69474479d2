"""The audit of a matrix of energies in a file, whoever made it, and its repair; and that of an energy in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.energy.audit import Audit, Repair, audit, repair
from jepatlas.workflows.energy.energy_file import load_energy_file
from jepatlas.workflows.energy.figures import audit_figures

__all__ = ["audit_file", "audit_saved"]

KNOWN = ("energies", "points", "truth")
AXIOMS = ("nonnegativity", "identity", "triangle", "midpoints")


def audit_file(
    path: Path,
    *,
    states: int,
    seed: int,
    tolerance: float | None = None,
    points: Path | None = None,
    repaired: Path | None = None,
) -> Record:
    """A record of what a matrix is; `points` is a file with what its rows and columns stand for. With `repaired`, its
    closure is written there, beside all else that the file holds.
    """
    arrays = read_arrays(path)
    name = _matrix(path, arrays)
    energies, known = arrays[name], arrays if points is None else arrays | _points(points)
    if repaired is not None:
        _check_room(repaired, arrays)
    try:
        found = audit(
            energies, known.get("points"), truth=known.get("truth"), states=states, tolerance=tolerance, seed=seed
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    said = _summary(found)
    if repaired is not None:
        mended = repair(energies)
        beside = {other: array for other, array in arrays.items() if other != name}
        write_arrays(repaired, {"energies": mended.energies} | beside)
        said += " " + _repaired(mended)
    return _record(path, found, said, len(energies), seed)


def audit_saved(path: Path, points: Path, *, states: int, seed: int, tolerance: float | None = None) -> Record:
    """A record of what a saved energy is at the points of a file, which may hold the `truth` between them."""
    saved, given = load_energy_file(path), _points(points)
    rows, truth = given["points"], given.get("truth")
    if rows.ndim != 2 or rows.shape[1] != saved.dim:
        raise InputError(f"{points}: the energy takes points (n, {saved.dim}), but these are {rows.shape}.")
    if truth is not None and saved.spec.discount is not None:
        raise InputError(
            f"{points} has a 'truth', but the energy is discounted (γ = {saved.spec.discount:g}): the two are not on "
            "one scale. Leave the truth out, or audit the run, which knows what a step costs."
        )
    try:
        found = audit(
            saved.model(), rows.astype(np.float32), truth=truth, states=states, tolerance=tolerance, seed=seed
        )
    except InputError as error:
        raise InputError(f"{points}: {error}") from error
    return _record(path, found, _summary(found), len(rows), seed)


def _record(path: Path, found: Audit, said: str, count: int, seed: int) -> Record:
    about = provenance(seed) | {"states": len(found.states), "of": count}
    return Record(f"Audit of {path.name}", said, about, found.verdicts, audit_figures(found, path.stem))


def _points(path: Path) -> dict[str, np.ndarray]:
    """`points` of a file, as which its latents `h` or its only array do, too; and `truth` where it has one."""
    arrays = read_arrays(path)
    names = [name for name in ("points", "h", *(arrays if len(arrays) == 1 else ())) if name in arrays]
    if not names:
        raise InputError(f"{path} holds {', '.join(arrays)}: which of them are the points? Call them 'points' or 'h'.")
    return {"points": arrays[names[0]]} | ({"truth": arrays["truth"]} if "truth" in arrays else {})


def _matrix(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Which array it is."""
    if len(arrays) == 1:
        return next(iter(arrays))
    if "energies" not in arrays:
        raise InputError(
            f"{path} holds {', '.join(arrays)}: which of them is the matrix? Call it 'energies' (known beside it: "
            f"{', '.join(KNOWN[1:])})."
        )
    return "energies"


def _check_room(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Before anything is computed: a .npy file has room for one array."""
    if len(arrays) > 1 and path.suffix.lower() == ".npy":
        raise InputError(f"{path} has room for one array, but there are {', '.join(arrays)}. Name a .npz file.")


def _summary(found: Audit) -> str:
    failed = [verdict.name for verdict in found.verdicts if verdict.passed is False]
    axioms = [name for name in failed if name in AXIOMS]
    pseudo = "indiscernibles" in failed  # distinct states at energy 0
    kind = f"no quasimetric: {', '.join(axioms)} failed" if axioms else f"a {'pseudo-' if pseudo else ''}quasimetric"
    others = [name for name in failed if name not in axioms]
    said = f"On {len(found.states)} states this is {kind}."
    return said + (f" Not passed: {', '.join(others)}." if others else "")


def _repaired(mended: Repair) -> str:
    return (
        f"Its closure, the largest quasimetric below it, changes {mended.share:.1%} of the entries, by "
        f"{mended.mean:.3g} in the mean and {mended.largest:.3g} at most, and opens {mended.opened} ways that were +∞."
    )
