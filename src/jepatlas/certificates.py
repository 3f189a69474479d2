"""A certificate as a record: the verdicts on some latents, what they say together, and charts to look at.

Whether it passes is decided by what there is to decide by:

    with the truth       the diagnosis: a rotation passes
    without, or no ρ     the better of the two bounds, and every check of the audit and of the ladder

Undecided is no pass: `passed` is None then, as it is where nothing could be judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.base.arrays import read_arrays
from jepatlas.base.errors import InputError
from jepatlas.base.linear import hold_out, procrustes
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.identify import Diagnosis, OwnLadder, audit, certify, diagnose, own_ladder
from jepatlas.identify.checks import check_matrices, check_pairs, check_same_shape, rates

__all__ = ["Certificate", "certificate", "certify_file"]

SHOWN = 1500  # points of a scatter plot
CHARTS = {"z": "true state z", "x": "observation x", "h": "latent h", "h_rotated": "latent h, rotated to z"}
KNOWN = ("h", "h_next", "z", "groups", "x", "x_next")
MISMATCH = ("state_directions", "minimal_r2_lost", "captured", "superposition")
UNKNOWABLE = (
    "whether it is Gaussian with one rate, as the bound presumes (another world, relabelled by a monotone warp, can "
    "look like one); and which rotation of its coordinates the latents are."
)


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
    passed = _passed(diagnosis, verdicts, checks, unread)
    verdicts = list({verdict.name: verdict for verdict in [*verdicts, *checks]}.values())  # the rank may be there twice
    shown = {} if z is None else _shown(arrays, seed)
    parts = (_found(diagnosis, verdicts, ladder if given is None else None), _mismatch(verdicts),
             ladder.sentence if ladder else "", OUTCOME[passed], _tally(verdicts), "" if z is not None else
             _unknown(ladder, verdicts), note)  # fmt: skip
    return Certificate(
        title=title,
        summary=" ".join(part for part in parts if part),
        provenance=provenance(seed) | {"samples": len(arrays["h"])} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=(_charts(shown),) if shown else (),
        tables=(ladder.table,) if ladder and ladder.found else (),
        arrays=shown,
        diagnosis=diagnosis,
        passed=passed,
    )


def certify_file(path: Path, *, rho: float | None, seed: int) -> Certificate:
    """Judge anybody's latents, from a file with `h`, `h_next` and, where known, `z`, `groups`, `x` and `x_next`."""
    arrays = read_arrays(path)
    if missing := {"h", "h_next"} - arrays.keys():
        raise InputError(
            f"{path}: a certificate needs the arrays 'h' and 'h_next' (latents of paired views, row by row), but "
            f"{' and '.join(sorted(missing))} is missing. Found: {', '.join(arrays)}."
        )
    known = "unknown" if rho is None else rho
    title, note = f"Certificate of {path.name}", _unused(arrays)
    return certificate(title, arrays, rho=known, seed=seed, audited=True, note=note)


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


OUTCOME = {
    True: "The certificate passes.",
    False: "The certificate does not pass.",
    None: "The certificate is undecided, which is no pass.",
}


def _passed(diagnosis: Diagnosis | None, verdicts: list[Verdict], checks: list[Verdict], unread: bool) -> bool | None:
    """With the truth the diagnosis decides; without, the better of the two bounds together with all checks.

    A ladder that could not be read leaves it open where ρ was estimated from it; beside a given ρ it only informs.
    """
    if diagnosis is not None:
        return None if diagnosis.kind == "undecided" else diagnosis.kind == "rotation"
    bound = _better_bound(verdicts)
    answers = [bound and bound.passed, *(check.passed for check in checks if check.threshold is not None)]
    answers += [None] if unread else []
    return False if False in answers else None if None in answers else True


def _better_bound(verdicts: list[Verdict]) -> Verdict | None:
    """That of the latents as they are, or whitened; None where there is none."""
    bounds = [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]
    order = {True: 0, None: 1, False: 2}
    return min(bounds, key=lambda verdict: (order[verdict.passed], verdict.high)) if bounds else None


def _unknown(ladder: OwnLadder | None, verdicts: list[Verdict]) -> str:
    """What latents cannot tell of themselves, and observations only in part."""
    seen = (
        next((v for v in verdicts if v.name == "dimension"), None) if ladder and ladder.of == "observations" else None
    )
    if seen is None or seen.passed is None:
        start = "three things stay open: whether the world has dimensions that the latents miss; "
    elif seen.passed:
        start = "three things stay open: whether the world has dimensions that the observations do not show; "
    else:
        start = "two things stay open, beside which dimensions are missing: "
    return f"Without the truth {start}{UNKNOWABLE}"


def _found(diagnosis: Diagnosis | None, verdicts: list[Verdict], source: OwnLadder | None) -> str:
    """The answer, in one or two sentences; `source` is what ρ was estimated from, where it was not given."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    if diagnosis is not None:
        r2, turn = by_name["r2"], by_name["orthogonality"]
        numbers = f"Held-out R² {r2.value:.4f} [{r2.low:.4f}, {r2.high:.4f}], orthogonality error {turn.value:.3f}."
        return f"{diagnosis.sentence} {numbers}"
    bound = _better_bound(verdicts)
    if bound is None:
        return "Without the truth and without ρ nothing can be certified."
    limit = f"at most {bound.value:.3f} [{bound.low:.3f}, {bound.high:.3f}] away from a rotation of the state"
    white = ", whitened," if bound.name == "bound_whitened" else ""
    condition = "" if source is None else f"if the {source.of} determine the state, "
    return f"Without the truth: {condition}the latents{white} are {limit}. {bound.advice}"


def _mismatch(verdicts: list[Verdict]) -> str:
    """What more, or fewer, latents than states hold: their verdicts in words."""
    return " ".join(verdict.advice for verdict in verdicts if verdict.name in MISMATCH)


def _tally(verdicts: list[Verdict]) -> str:
    judged = [verdict for verdict in verdicts if verdict.threshold is not None]
    open_, failed = ([v.name for v in judged if v.passed is answer] for answer in (None, False))
    if not failed and not open_:
        return f"All {len(judged)} judged statements hold." if judged else ""
    said = (f"Not passed: {', '.join(failed)}." if failed else "", f"Undecided: {', '.join(open_)}." if open_ else "")
    return " ".join(part for part in said if part)


def _shown(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """A few samples in all coordinates, for charts of two axes; the rotation is fitted on other samples."""
    h, z = arrays["h"], arrays["z"]
    if min(h.shape[1], z.shape[1]) < 2:
        return {}
    fit, score = hold_out(len(h), numpy_generator(seed, "shown"), share=min(0.5, SHOWN / len(h)))
    places = {name: arrays[name][score] for name in ("z", "x", "h") if name in arrays}
    places["h_rotated"] = procrustes(h[fit], z[fit]).apply(h[score])
    return {name: array.astype(np.float32) for name, array in places.items()}


def _charts(shown: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "kind": "scatter",
        "title": "The same samples in different coordinates",
        "note": "Colour is the true state: angle as hue. Where the last panel looks like the first, h = Qz.",
        "panels": [{"title": title, "x": name, "columns": [0, 1], "color": "z", "color_columns": [0, 1]}
                   for name, title in CHARTS.items() if name in shown],
    }  # fmt: skip
