"""A certificate as a record: the verdicts on some latents, what they say together, and charts to look at."""

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
MISMATCH = ("state_directions", "minimal_r2_lost", "captured", "superposition")
UNKNOWABLE = (
    "Without the truth three things stay open: whether the world has dimensions that the latents miss; whether it is "
    "Gaussian with one rate, as the bound presumes (another world, relabelled by a monotone warp, can look like one); "
    "and which rotation of its coordinates the latents are."
)


@dataclass(frozen=True)
class Certificate(Record):
    """A record with the diagnosis, where there was a truth to diagnose by."""

    diagnosis: Diagnosis | None = None


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
    ladder = _ladder(arrays, seed) if audited else None
    used = ladder.rho if ladder and rho == "unknown" else given
    own = ladder if ladder and ladder.of == "latents" else None
    options = {"rho": used, "groups": groups, "ladder": own, "seed": seed}
    verdicts = [] if z is None and used is None else certify(h, h_next, z, **options)
    diagnosis = diagnose(verdicts)
    if ladder:
        verdicts += [*ladder.verdicts(h.shape[1], given), *audit(h, h_next, groups=groups, seed=seed)]
    verdicts = list({verdict.name: verdict for verdict in verdicts}.values())  # the rank may be there twice
    shown = {} if z is None else _shown(arrays, seed)
    parts = (_found(diagnosis, verdicts), _mismatch(verdicts), ladder.sentence if ladder else "", _tally(verdicts),
             UNKNOWABLE if z is None else "", note)  # fmt: skip
    return Certificate(
        title=title,
        summary=" ".join(part for part in parts if part),
        provenance=provenance(seed) | {"samples": len(arrays["h"])} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=(_charts(shown),) if shown else (),
        tables=(ladder.table,) if ladder and ladder.found else (),
        arrays=shown,
        diagnosis=diagnosis,
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
    return certificate(f"Certificate of {path.name}", arrays, rho=known, seed=seed, audited=True)


def _ladder(arrays: Mapping[str, np.ndarray], seed: int) -> OwnLadder:
    """Of the observations, where both views of them are there: they know at least as much as latents made from them."""
    groups = arrays.get("groups")
    if not {"x", "x_next"} <= arrays.keys():
        return own_ladder(arrays["h"], arrays["h_next"], groups=groups, seed=seed)
    x, x_next = arrays["x"], arrays["x_next"]
    check_matrices(x=x, x_next=x_next, h=arrays["h"])
    check_same_shape(x=x, x_next=x_next)
    return own_ladder(x, x_next, "observations", groups=groups, seed=seed)


def _found(diagnosis: Diagnosis | None, verdicts: list[Verdict]) -> str:
    """The answer, in one or two sentences."""
    by_name = {verdict.name: verdict for verdict in verdicts}
    if diagnosis is not None:
        r2, turn = by_name["r2"], by_name["orthogonality"]
        numbers = f"Held-out R² {r2.value:.4f} [{r2.low:.4f}, {r2.high:.4f}], orthogonality error {turn.value:.3f}."
        return f"{diagnosis.sentence} {numbers}"
    bound = by_name.get("bound_whitened")
    if bound is None:
        return "Without the truth and without ρ nothing can be certified."
    limit = f"at most {bound.value:.3f} [{bound.low:.3f}, {bound.high:.3f}]"
    return f"Without the truth: whitened, the latents are {limit} away from a rotation of the state. {bound.advice}"


def _mismatch(verdicts: list[Verdict]) -> str:
    """What more, or fewer, latents than states hold: their verdicts in words."""
    return " ".join(verdict.advice for verdict in verdicts if verdict.name in MISMATCH)


def _tally(verdicts: list[Verdict]) -> str:
    judged = [verdict for verdict in verdicts if verdict.threshold is not None]
    open_, failed = ([v.name for v in judged if v.passed is answer] for answer in (None, False))
    held = f"Not passed: {', '.join(failed)}." if failed else f"All {len(judged) - len(open_)} judged statements hold."
    return held + (f" Undecided: {', '.join(open_)}." if open_ else "")


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
