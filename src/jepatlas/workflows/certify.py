"""Certificates of latents as records: verdicts, whether they pass, a summary in words, and a figure.

A certificate passes

    with the true state       if the diagnosis is a rotation
    without, or without ρ     if the better of the two bounds and all checks of the audit and the spectrum pass
    with actions              if in addition the dynamics under actions pass, see `certify_actions`

and is undecided (None) where a verdict it depends on is undecided, or where nothing could be judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curve, Curves, Figure, Scatter, ScatterPanel
from jepatlas.core.linear import hold_out, procrustes, subsample
from jepatlas.core.processes import limited_threads
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.verdict_names import plain_name
from jepatlas.identifiability import (
    Diagnosis,
    PairLadder,
    audit,
    certify,
    diagnose,
    find_bad_rows,
    find_trajectories,
    fit_pair_ladder,
)
from jepatlas.identifiability.validation import as_arrays, check_matrices, check_pairs, check_same_shape, rates
from jepatlas.results import Result
from jepatlas.workflows.certify_actions import ActionFindings

__all__ = [
    "SAMPLES",
    "Certificate",
    "CertificateRecord",
    "certificate",
    "certify_arrays",
    "certify_file",
    "check_samples",
]

SAMPLES = 40_000  # pairs by which a run is certified
MIN_SAMPLES = 100
REPLICATES = 500
QUICK_REPLICATES = 50
QUICK_ROWS = 10_000
QUICK_AUDIT_ROWS = 2_000
QUICK_AUDIT_DRAWS = 50
QUICK_NOTE = (
    f"Quick: {QUICK_REPLICATES} resamples of at most {QUICK_ROWS:,} pairs. Left out: the spectrum, and with it "
    "estimates of ρ and of the number of directions"
)
QUICK_AUDIT_NOTE = f". The audit has {QUICK_AUDIT_ROWS:,} pairs at most, and {QUICK_AUDIT_DRAWS} draws of each null"

ARRAYS = ("h", "h_next", "z", "groups", "x", "x_next", "u", "z_next")
ENCODED = ("ids", "labels", "held", "raw", "untrained", "times", "steps")
"""What `jepatlas encode` writes for other commands."""
MAX_POINTS = 1500  # of a scatter plot
WIDE = 0.5  # width of an interval of R², or of a share, beyond which a diagnosis is not firm
FEW_HELD_OUT = 50  # rows below which it is not firm either: intervals are too narrow then
UNCERTAIN = {"r2": "R²", "r2_inverse": "R² of the latents from the state", "diagnosis": "the share it affects"}
PANELS = {"z": "true state z", "x": "observation x", "h": "latent h", "h_rotated": "latent h, rotated to z"}
BOUNDS = ("bound", "bound_whitened", "bound_rates")
MISMATCH = ("state_directions", "minimal_r2_lost", "captured", "superposition")
OUTCOME = {
    True: "The certificate passes.",
    False: "The certificate fails.",
    None: "The certificate is undecided.",
}


@dataclass(frozen=True)
class CertificateRecord(Record):
    """A record with the diagnosis (None without the true state), and whether it passes (None: undecided)."""

    diagnosis: Diagnosis | None = None
    passed: bool | None = None

    def to_json(self) -> dict[str, Any]:
        diagnosis = None if self.diagnosis is None else asdict(self.diagnosis)
        return super().to_json() | {"diagnosis": diagnosis, "passed": self.passed}


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """A certificate of latents."""

    record: CertificateRecord

    record_name: ClassVar[str] = "certificate"

    @property
    def passed(self) -> bool | None:
        """Whether the latents are the world's own coordinates up to a rotation; None if that is undecided."""
        return self.record.passed

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The main finding; None without the true state."""
        return self.record.diagnosis


def check_samples(samples: int) -> None:
    """Raise InputError if a certificate needs more pairs."""
    if samples < MIN_SAMPLES:
        raise InputError(f"samples is {samples}, but a certificate needs at least {MIN_SAMPLES}.")


def certify_file(path: Path, *, rho: float | None, seed: int, quick: bool = False) -> CertificateRecord:
    """Certify latents from a file with `h`, `h_next` and, if known, `z`, `groups`, `x`, `x_next`, `u` and `z_next`."""
    arrays = read_arrays(path)
    missing = sorted({"h", "h_next"} - arrays.keys())
    if missing:
        raise InputError(
            f"{path}: missing {' and '.join(missing)}. A certificate needs the arrays 'h' and 'h_next', the latents of "
            f"paired views, row by row, in one file or in two. Found: {', '.join(arrays)}."
        )
    return certify_arrays(f"Certificate of {path.name}", arrays, rho=rho, seed=seed, quick=quick)


@limited_threads()
def certify_arrays(
    title: str, arrays: Mapping[str, np.ndarray], *, rho: float | None, seed: int, quick: bool = False
) -> CertificateRecord:
    """Certify latents with the audit, after setting aside up to 1% of bad rows.

    Rows without groups that are steps of a trajectory, in any order, are resampled in time blocks.
    """
    h, h_next, z, groups = as_arrays(
        h=arrays["h"], h_next=arrays["h_next"], z=arrays.get("z"), groups=arrays.get("groups")
    )
    check_pairs(h, h_next, z, groups)
    notes = []
    if groups is None:
        found = find_trajectories(h, h_next)
        notes.append(found.note)
        if found.blocks is not None:
            arrays = {**arrays, "groups": found.blocks}
    bad = find_bad_rows(h, h_next, z)
    if bad.count:
        arrays = {name: array[~bad.rows] if name in ARRAYS else array for name, array in arrays.items()}
    notes = [bad.note, *notes, *_warnings(arrays)]
    known_rho = "unknown" if rho is None else rho
    note = " ".join(note for note in notes if note)
    return certificate(title, arrays, rho=known_rho, seed=seed, audited=True, quick=quick, note=note)


def _warnings(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """A warning about arrays that are not used, such as a misspelt `z`."""
    unknown = [repr(name) for name in arrays if name not in (*ARRAYS, *ENCODED) and not name.startswith("layer")]
    problems = []
    if unknown:
        problems.append(f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown and ignored")
    for one, other in (("x", "x_next"), ("x_next", "x"), ("z_next", "z"), ("z_next", "u")):
        if one in arrays and other not in arrays:
            problems.append(f"'{one}' is ignored, because '{other}' is missing")
    return [f"Warning: {'; '.join(problems)}. Known arrays: {', '.join(ARRAYS)}."] if problems else []


@limited_threads()
def certificate(
    title: str,
    arrays: Mapping[str, np.ndarray],
    *,
    rho: float | Literal["unknown"] | None,
    seed: int,
    audited: bool = False,
    quick: bool = False,
    note: str = "",
    about: Mapping[str, Any] | None = None,
) -> CertificateRecord:
    """Certify the arrays `h` and `h_next`, with the true state `z`, observations `x` and `x_next`, and `groups`.

    With actions `u`, also their dynamics, compared with those of the states if `z_next` is given.

    `rho` is None if no bound applies; "unknown" estimates it (if `audited`). `audited` also computes the spectrum of
    the pairs and audits the assumptions of the theorems. `quick` resamples less, also for nulls, and leaves out the
    spectrum, and with the true state also the audit.
    """
    count = len(arrays["h"])
    if quick:
        check_pairs(arrays["h"], arrays["h_next"], arrays.get("z"), arrays.get("groups"))
        arrays = _subsampled(arrays, QUICK_ROWS, seed)
        note = f"{note} {QUICK_NOTE}{'; and the audit' if 'z' in arrays else QUICK_AUDIT_NOTE}.".strip()
    h = arrays["h"]
    h_next = arrays["h_next"]
    z = arrays.get("z")
    groups = arrays.get("groups")
    check_pairs(h, h_next, z, groups)
    estimated = rho == "unknown"
    given_rho = None if rho is None or rho == "unknown" else float(rates(rho, 1)[0])
    ladder = _pair_ladder(arrays, seed, exact=estimated) if audited and not quick else None
    used_rho = ladder.rho if ladder is not None and estimated else given_rho
    latent_ladder = ladder if ladder is not None and ladder.source == "latents" else None
    verdicts: list[Verdict] = []
    if z is not None or used_rho is not None:
        replicates = QUICK_REPLICATES if quick else REPLICATES
        verdicts = certify(
            h,
            h_next,
            z,
            rho=used_rho,
            groups=groups,
            ladder=latent_ladder,
            seed=seed,
            replicates=replicates,
            spectral=not quick,
        )
    diagnosis = _cautious(diagnose(verdicts), verdicts)
    checks: list[Verdict] = []
    if ladder is not None:
        checks = [*ladder.verdicts(h.shape[1], given_rho), *audit(h, h_next, groups=groups, seed=seed)]
    elif audited and z is None:
        some = _subsampled(arrays, QUICK_AUDIT_ROWS, seed)
        checks = audit(some["h"], some["h_next"], groups=some.get("groups"), seed=seed, draws=QUICK_AUDIT_DRAWS)
    if any(check.name == "bound_rates" and check.passed is not False and check.value < np.inf for check in checks):
        checks = [_informative_isotropy(check) if check.name == "isotropy" else check for check in checks]
    has_dimension = any(check.name == "dimension" for check in checks)
    passed = _passes(diagnosis, verdicts, checks, needs_spectrum=estimated and not has_dimension)
    by_name = {verdict.name: verdict for verdict in [*verdicts, *checks]}  # the rank may be in both
    verdicts = list(by_name.values())
    if "u" in arrays:
        actions = ActionFindings.of(arrays, seed=seed, replicates=QUICK_REPLICATES if quick else REPLICATES)
        verdicts += actions.verdicts
        passed = _both(passed, actions.passed)
        note = f"{actions.sentence} {note}".strip()
    summary = _summary(verdicts, passed, diagnosis, ladder, rho_estimated=given_rho is None)
    points = _scatter_points(arrays, seed)
    return CertificateRecord(
        title=title,
        summary=f"{summary} {note}".strip(),
        provenance=provenance(seed) | {"samples": count, "latent_dim": h.shape[1]} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=_figures(points, ladder),
        tables=(ladder.table,) if ladder is not None and ladder.spectrum is not None else (),
        arrays=points,
        diagnosis=diagnosis,
        passed=passed,
    )


def _pair_ladder(arrays: Mapping[str, np.ndarray], seed: int, *, exact: bool) -> PairLadder:
    """The spectrum of the observations of both views, if given, which contain at least as much as the latents."""
    groups = arrays.get("groups")
    latents = (arrays["h"], arrays["h_next"])
    if not {"x", "x_next"} <= arrays.keys():
        return fit_pair_ladder(*latents, groups=groups, seed=seed, exact=exact, latents=latents)
    x = arrays["x"]
    x_next = arrays["x_next"]
    check_matrices(x=x, x_next=x_next, h=arrays["h"])
    check_same_shape(x=x, x_next=x_next)
    return fit_pair_ladder(x, x_next, "observations", groups=groups, seed=seed, exact=exact, latents=latents)


def _cautious(diagnosis: Diagnosis | None, verdicts: Sequence[Verdict]) -> Diagnosis | None:
    """The diagnosis; if few rows are held out or an interval is wide, its sentence begins with that."""
    if diagnosis is None:
        return None
    judged = {verdict.name: verdict for verdict in verdicts if verdict.name in UNCERTAIN}
    widest = max(judged.values(), key=_width)
    rows = judged["r2"].n
    if _width(widest) > WIDE:
        reason = f"{UNCERTAIN[widest.name]} may be anywhere from {_short(widest.low)} to {_short(widest.high)} (95%)"
    elif rows < FEW_HELD_OUT:
        reason = f"only {rows} rows are held out"
    else:
        return diagnosis
    scarce = f"Too few pairs or groups for a firm diagnosis: {reason}. With more of them it may change. So far: "
    return replace(diagnosis, sentence=scarce + diagnosis.sentence)


def _width(verdict: Verdict) -> float:
    """Width of the interval; 0 if undefined. Of a diagnosis only within [0, 1], because a stretch is not a share."""
    low, high = verdict.low, verdict.high
    if verdict.name == "diagnosis":
        low, high = np.clip((low, high), 0.0, 1.0)
    return float(np.nan_to_num(high - low))


def _passes(
    diagnosis: Diagnosis | None, verdicts: Sequence[Verdict], checks: Sequence[Verdict], *, needs_spectrum: bool
) -> bool | None:
    """`needs_spectrum`: ρ had to be estimated, but the spectrum could not be computed."""
    if diagnosis is not None:
        return None if diagnosis.kind == "undecided" else diagnosis.kind == "rotation"
    bound = _better_bound([*verdicts, *checks])
    answers = [check.passed for check in checks if check.threshold is not None and check.name not in BOUNDS]
    answers.append(None if bound is None else bound.passed)
    if False in answers:
        return False
    if needs_spectrum or None in answers:
        return None
    return True


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if None in (one, other) else True


def _informative_isotropy(isotropy: Verdict) -> Verdict:
    """Different rates need not be a failure, because `bound_rates` has one rate for each direction."""
    if isotropy.passed is not False:
        return isotropy
    advice = "Directions decay at different rates; bound_rates allows for that."
    return replace(isotropy, passed=None, threshold=None, advice=advice)


def _better_bound(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The best of the bounds: of the latents as they are, whitened, or with a rate for each direction."""
    bounds = [verdict for verdict in verdicts if verdict.name in BOUNDS]
    if not bounds:
        return None
    order = {True: 0, None: 1, False: 2}
    return min(bounds, key=lambda verdict: (order[verdict.passed], verdict.high))


def _summary(
    verdicts: Sequence[Verdict],
    passed: bool | None,
    diagnosis: Diagnosis | None,
    ladder: PairLadder | None,
    *,
    rho_estimated: bool,
) -> str:
    """The result first: the diagnosis with the true state, otherwise whether the certificate passes."""
    if diagnosis is not None:
        parts = [diagnosis.sentence, _recovery_numbers(verdicts), OUTCOME[passed]]
    else:
        parts = [OUTCOME[passed], _bound_sentence(verdicts, ladder if rho_estimated else None)]
    paired = next((verdict for verdict in verdicts if verdict.name == "paired"), None)
    if paired is not None and paired.passed is not True:
        parts.insert(1, paired.advice)
    mismatch = " ".join(verdict.advice for verdict in verdicts if verdict.name in MISMATCH)
    parts.append(mismatch)
    if ladder is not None and ladder.sentence not in mismatch:
        parts.append(ladder.sentence)
    parts.append(_tally(verdicts, passed))
    if diagnosis is None:
        parts.append(_open_questions(ladder, verdicts, rho_estimated=rho_estimated))
    return " ".join(part for part in parts if part)


def _recovery_numbers(verdicts: Sequence[Verdict]) -> str:
    by_name = {verdict.name: verdict for verdict in verdicts}
    r2 = by_name["r2"]
    error = by_name["orthogonality"].value
    return f"Held-out R² {_short(r2.value)} [{_short(r2.low)}, {_short(r2.high)}], orthogonality error {error:.3g}."


def _bound_sentence(verdicts: Sequence[Verdict], estimated_from: PairLadder | None) -> str:
    bound = _better_bound(verdicts)
    if bound is None:
        return "Without the true state and without ρ, nothing can be certified."
    whitened = "" if bound.name == "bound" else "whitened "
    numbers = f"{bound.value:.3g} [{bound.low:.3g}, {bound.high:.3g}]"
    text = f"the distance of the {whitened}latents from a rotation of the state is at most {numbers}."
    if estimated_from is not None:
        text = f"if the {estimated_from.source} determine the state, {text}"
    return f"{text[0].upper()}{text[1:]} {bound.advice}"


def _tally(verdicts: Sequence[Verdict], passed: bool | None) -> str:
    judged = [verdict for verdict in verdicts if verdict.threshold is not None]
    failed = [plain_name(verdict.name) for verdict in judged if verdict.passed is False]
    undecided = [plain_name(verdict.name) for verdict in judged if verdict.passed is None]
    if judged and not failed and not undecided:
        return f"All {len(judged)} checks pass."
    parts = []
    if failed:
        parts.append(f"{'Not required, but failed' if passed else 'Failed'}: {', '.join(failed)}.")
    if undecided:
        parts.append(f"Undecided: {', '.join(undecided)}.")
    return " ".join(parts)


def _open_questions(ladder: PairLadder | None, verdicts: Sequence[Verdict], *, rho_estimated: bool) -> str:
    """What cannot be answered without the true state."""
    questions = [
        "whether the world is Gaussian with one rate, as the bound assumes (a monotone warp of another world can look "
        "the same)",
        "which rotation of its coordinates the latents are, and whether it stays the same over time and between groups",
    ]
    if rho_estimated:
        questions.append("whether the latents contain noise, which lowers all correlations as a smaller ρ does")
    dimension = next((verdict.passed for verdict in verdicts if verdict.name == "dimension"), None)
    if ladder is None or ladder.source == "latents" or dimension is None:
        questions.insert(0, "whether the world has dimensions that the latents miss")
    elif dimension:
        questions.insert(0, "whether the world has dimensions that the observations do not show")
    else:
        questions.insert(0, "which dimensions are missing")
    return f"Open without the true state: {'; '.join(questions)}."


def _short(number: float) -> str:
    """Four decimals, but scientific notation for large values: R² has no lower limit."""
    return f"{number:.4f}" if abs(number) < 1000 else f"{number:.1e}"


def _subsampled(arrays: Mapping[str, np.ndarray], most: int, seed: int) -> dict[str, np.ndarray]:
    """At most `most` rows of all arrays, at random and in their order."""
    rows = np.sort(numpy_generator(seed, "quick").permutation(len(arrays["h"]))[:most])
    return {name: array[rows] for name, array in arrays.items()}


def _scatter_points(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Some samples in all coordinates; the rotation to z is fitted on other samples. Empty for 1-D arrays."""
    h = arrays["h"]
    z = arrays.get("z")
    if z is None:
        return _latent_points(h, arrays["h_next"])
    if min(h.shape[1], z.shape[1]) < 2:
        return {}
    fit, score = hold_out(len(h), numpy_generator(seed, "shown"), share=min(0.5, MAX_POINTS / len(h)))
    points = {name: arrays[name][score] for name in ("z", "x", "h") if name in arrays}
    points["h_rotated"] = procrustes(h[fit], z[fit]).apply(h[score])
    return {name: array.astype(np.float32) for name, array in points.items()}


def _latent_points(h: np.ndarray, h_next: np.ndarray) -> dict[str, np.ndarray]:
    """Both views of some samples on the two axes of largest variance."""
    if h.shape[1] < 2:
        return {}
    rows = subsample(np.arange(len(h)), MAX_POINTS)
    centre = h.mean(0, dtype=np.float64)
    axes = np.linalg.eigh(np.cov(h.astype(np.float64), rowvar=False))[1][:, :-3:-1]
    points = {"h": (h[rows] - centre) @ axes, "h_next": (h_next[rows] - centre) @ axes}
    return {name: array.astype(np.float32) for name, array in points.items()}


def _figures(points: Mapping[str, np.ndarray], ladder: PairLadder | None) -> tuple[Figure, ...]:
    figures: list[Figure] = []
    if "z" in points:
        figures.append(_scatter(points))
    elif points:
        figures.append(_latent_scatter())
    if ladder is not None and ladder.spectrum is not None:
        figures.append(_spectrum_curve(ladder))
    return tuple(figures)


def _latent_scatter() -> Scatter:
    return Scatter(
        title="Latents of both views, on the two axes of largest variance",
        note="Colour is the angle of h. Without the true state, a picture cannot show whether the latents are right.",
        panels=[
            ScatterPanel("h", "latent h", columns=[0, 1], color="h", color_columns=[0, 1]),
            ScatterPanel("h_next", "latent h of the other view", columns=[0, 1], color="h", color_columns=[0, 1]),
        ],
    )


def _spectrum_curve(ladder: PairLadder) -> Curves:
    """Correlation between views of each function of the ladder; directions and harmonics apart."""
    assert ladder.spectrum is not None
    steps = list(enumerate(ladder.spectrum.ladder.steps, 1))
    curves = []
    for kind in dict.fromkeys(step.kind for _, step in steps):
        numbers = [number for number, step in steps if step.kind == kind]
        values = [step.eigenvalue for _, step in steps if step.kind == kind]
        low = [value.low for value in values]
        high = [value.high for value in values]
        curves.append(Curve(kind, numbers, [value.value for value in values], low, high, points=True))
    return Curves(
        title=f"Spectrum of the {ladder.source}",
        note="Correlation between views of the slowest functions, held out, with 95% intervals.",
        series=curves,
        x_label="function",
        y_label="correlation between views",
    )


def _scatter(points: Mapping[str, np.ndarray]) -> Scatter:
    panels = [
        ScatterPanel(name, title, columns=[0, 1], color="z", color_columns=[0, 1])
        for name, title in PANELS.items()
        if name in points
    ]
    return Scatter(
        title="The same samples in different coordinates",
        note="Colour is the angle of the true state. If the last panel looks like the first, h = Qz.",
        panels=panels,
    )
