"""A certificate as a record: the verdicts on some latents, what they say together, and charts to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.identifiability import Diagnosis, OwnLadder, audit, certify, diagnose, own_ladder, time_blocks
from jepatlas.identifiability.checks import check_matrices, check_pairs, check_same_shape, rates
from jepatlas.workflows.certify.charts import chart, shown_samples
from jepatlas.workflows.certify.passing import decide
from jepatlas.workflows.certify.summary import summarise

__all__ = ["Certificate", "certificate", "certify_file"]

KNOWN = ("h", "h_next", "z", "groups", "x", "x_next")


@dataclass(frozen=True)
class Certificate(Record):
    """A record with the diagnosis, where there was a truth to diagnose by, and whether it passes (None: undecided)."""

    diagnosis: Diagnosis | None = None
    passed: bool | None = None


def certificate(
    title: str,
    arrays: Mapping[str, np.ndarray],
    *,
    rho: float | Literal["unknown"] | None,
    seed: int,
    audited: bool = False,
    note: str = "",
    about: Mapping[str, Any] | None = None,
) -> Certificate:
    """Judge the arrays `h` and `h_next`, with the truth `z`, observations `x` and `x_next`, and `groups` where given.

    `rho` is None where no bound applies; an unknown one is estimated, if the pairs are `audited`. That means: their
    ladder is read, and it is asked whether they look like the world that the theorems speak of.
    """
    h, h_next, z, groups = (arrays.get(name) for name in ("h", "h_next", "z", "groups"))
    assert h is not None and h_next is not None
    check_pairs(h, h_next, z, groups)
    given = None if rho is None or rho == "unknown" else float(rates(rho, 1)[0])
    ladder = _ladder(arrays, seed, exact=rho == "unknown") if audited else None
    used = ladder.rho if ladder and rho == "unknown" else given
    own = ladder if ladder and ladder.of == "latents" else None
    options = {"rho": used, "groups": groups, "ladder": own, "seed": seed}
    verdicts = [] if z is None and used is None else certify(h, h_next, z, **options)
    diagnosis = diagnose(verdicts)
    checks: list[Verdict] = []
    if ladder:
        checks = [*ladder.verdicts(h.shape[1], given), *audit(h, h_next, groups=groups, seed=seed)]
    unread = rho == "unknown" and not any(check.name == "dimension" for check in checks)
    passed = decide(diagnosis, verdicts, checks, unread)
    verdicts = list({verdict.name: verdict for verdict in [*verdicts, *checks]}.values())  # the rank may be there twice
    shown = {} if z is None else shown_samples(arrays, seed)
    said = summarise(verdicts, passed, diagnosis, ladder, ladder if given is None else None)
    return Certificate(
        title=title,
        summary=f"{said} {note}".strip(),
        provenance=provenance(seed) | {"samples": len(h), "latent_dim": h.shape[1]} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=(chart(shown),) if shown else (),
        tables=(ladder.table,) if ladder and ladder.found else (),
        arrays=shown,
        diagnosis=diagnosis,
        passed=passed,
    )


def certify_file(path: Path, *, rho: float | None, seed: int) -> Certificate:
    """Judge anybody's latents, from a file with `h`, `h_next` and, where known, `z`, `groups`, `x` and `x_next`."""
    arrays = read_arrays(path)
    if missing := {"h", "h_next"} - arrays.keys():
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"{path}: a certificate needs the arrays 'h' and 'h_next' (latents of paired views, row by row), but "
            f"{' and '.join(sorted(missing))} {verb} missing. Found: {', '.join(arrays)}."
        )
    known, unused = "unknown" if rho is None else rho, _unused(arrays)
    arrays, blocks = _in_blocks(arrays)
    note = " ".join(part for part in (blocks, unused) if part)
    return certificate(f"Certificate of {path.name}", arrays, rho=known, seed=seed, audited=True, note=note)


def _in_blocks(arrays: Mapping[str, np.ndarray]) -> tuple[Mapping[str, np.ndarray], str]:
    """Rows of one long trajectory that came without groups are put in blocks of time, and it is said."""
    h, h_next = arrays["h"], arrays["h_next"]
    if "groups" in arrays:
        return arrays, ""
    check_pairs(h, h_next, arrays.get("z"), None)
    if (blocks := time_blocks(h, h_next)) is None:
        return arrays, ""
    said = (
        f"Rows are consecutive (h_next of a row is h of the next one), and no groups were given: they are taken as one "
        f"trajectory, in {blocks.max() + 1} time blocks that are split and resampled whole. If they are several "
        "episodes, give 'groups'."
    )
    return {**arrays, "groups": blocks}, said


def _unused(arrays: Mapping[str, np.ndarray]) -> str:
    """A warning of what the file holds in vain: a misspelt `z` must not go unnoticed."""
    said = []
    if unknown := [repr(name) for name in arrays if name not in KNOWN]:
        said.append(f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not known, and not used")
    for one, other in (("x", "x_next"), ("x_next", "x")):
        if one in arrays and other not in arrays:
            said.append(f"'{one}' is not judged, because '{other}' is missing")
    return f"Warning: {'; '.join(said)}. Known arrays: {', '.join(KNOWN)}." if said else ""


def _ladder(arrays: Mapping[str, np.ndarray], seed: int, *, exact: bool) -> OwnLadder:
    """Of the observations, where both views of them are there: they know at least as much as latents made from them."""
    groups = arrays.get("groups")
    if not {"x", "x_next"} <= arrays.keys():
        return own_ladder(arrays["h"], arrays["h_next"], groups=groups, seed=seed, exact=exact)
    x, x_next = arrays["x"], arrays["x_next"]
    check_matrices(x=x, x_next=x_next, h=arrays["h"])
    check_same_shape(x=x, x_next=x_next)
    return own_ladder(x, x_next, "observations", groups=groups, seed=seed, exact=exact)
