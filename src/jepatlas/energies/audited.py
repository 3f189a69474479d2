"""The audit of a matrix of energies in a file, whoever made it; and its repair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jepatlas.base.arrays import read_arrays, write_arrays
from jepatlas.base.errors import InputError
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record
from jepatlas.energies.figures import audit_figures
from jepatlas.energy import Audit, Repair, audit, repair

__all__ = ["audit_file"]

KNOWN = ("energies", "points", "truth")
AXIOMS = ("nonnegativity", "identity", "triangle")


def audit_file(path: Path, *, states: int, seed: int, repaired: Path | None = None) -> Record:
    """A record of what a matrix is; with `repaired`, its closure is written there."""
    arrays = read_arrays(path)
    energies = _energies(path, arrays)
    try:
        found = audit(energies, arrays.get("points"), truth=arrays.get("truth"), states=states, seed=seed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    said = _summary(found)
    if repaired is not None:
        mended = repair(energies)
        write_arrays(repaired, {"energies": mended.energies})
        said += " " + _repaired(mended)
    title = f"Audit of {path.name}"
    about = provenance(seed) | {"states": len(found.states), "of": len(energies)}
    return Record(title, said, about, found.verdicts, audit_figures(found, path.stem))


def _energies(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    if "energies" not in arrays:
        raise InputError(
            f"{path} holds {', '.join(arrays)}: which of them is the matrix? Call it 'energies' (known beside it: "
            f"{', '.join(KNOWN[1:])})."
        )
    return arrays["energies"]


def _summary(found: Audit) -> str:
    failed = [verdict.name for verdict in found.verdicts if verdict.passed is False]
    axioms = [name for name in failed if name in AXIOMS]
    kind = f"no quasimetric: {', '.join(axioms)} failed" if axioms else "a quasimetric"
    others = [name for name in failed if name not in axioms]
    said = f"On {len(found.states)} states this is {kind}."
    return said + (f" Not passed: {', '.join(others)}." if others else "")


def _repaired(mended: Repair) -> str:
    return (
        f"Its closure, the largest quasimetric below it, changes {mended.share:.1%} of the entries, by "
        f"{mended.mean:.3g} in the mean and {mended.largest:.3g} at most, and opens {mended.opened} ways that were +∞."
    )
