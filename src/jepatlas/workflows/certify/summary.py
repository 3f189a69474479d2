"""What the verdicts of a certificate say together: first whether it passes, then why, then what stays open."""

from __future__ import annotations

from jepatlas.core.records import Verdict
from jepatlas.identifiability import Diagnosis, OwnLadder
from jepatlas.workflows.certify.passing import better_bound

__all__ = ["summarise"]

MISMATCH = ("state_directions", "minimal_r2_lost", "captured", "superposition")
UNKNOWABLE = (
    "whether it is Gaussian with one rate, as the bound presumes (another world, relabelled by a monotone warp, can "
    "look like one); and which rotation of its coordinates the latents are."
)
OUTCOME = {
    True: "The certificate passes.",
    False: "The certificate does not pass.",
    None: "The certificate is undecided, which is no pass.",
}


def summarise(
    verdicts: list[Verdict],
    passed: bool | None,
    diagnosis: Diagnosis | None,
    ladder: OwnLadder | None,
    rho_from: OwnLadder | None,
) -> str:
    """The answer first: with the truth it is the diagnosis, without it whether the certificate passes.

    `rho_from` is the ladder that ρ was estimated from, where it was not given.
    """
    found = _found(diagnosis, verdicts, rho_from)
    first = (found, OUTCOME[passed]) if diagnosis else (OUTCOME[passed], found)
    mismatch = _mismatch(verdicts)
    read = ladder.sentence if ladder and ladder.sentence not in mismatch else ""  # why there is no ladder is said once
    parts = (*first, mismatch, read, _tally(verdicts), "" if diagnosis else _unknown(ladder, verdicts))
    return " ".join(part for part in parts if part)


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
        interval = ", ".join(map(_short, (r2.low, r2.high)))
        numbers = f"Held-out R² {_short(r2.value)} [{interval}], orthogonality error {turn.value:.3g}."
        return f"{diagnosis.sentence} {numbers}"
    bound = better_bound(verdicts)
    if bound is None:
        return "Without the truth and without ρ nothing can be certified."
    limit = f"at most {bound.value:.3g} [{bound.low:.3g}, {bound.high:.3g}] away from a rotation of the state"
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


def _short(number: float) -> str:
    """Four decimals, but not forty digits before them: R² falls without limit."""
    return f"{number:.4f}" if abs(number) < 1000 else f"{number:.1e}"
