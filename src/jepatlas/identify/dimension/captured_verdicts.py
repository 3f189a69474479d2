"""What latents hold of a state that is known, as verdicts: what is missing, what is squeezed in, what is minimal."""

from __future__ import annotations

from collections.abc import Mapping

from jepatlas.base.records import Estimate, Verdict
from jepatlas.identify.captured import Captured, name_direction

__all__ = ["captured_verdicts"]

HELD = 0.9
"""Share of a direction's variance from which the latents count as holding it."""
LOST = 0.02
"""R² that the minimal subspace may lose against all latents and still count as all there is."""
SUPERPOSED = 0.1
"""State directions above the number of latents that the noise of a nonlinear regression may suggest."""


def captured_verdicts(held: Captured, minimal: Mapping[str, Estimate], latents: int) -> list[Verdict]:
    """From `captured` and `minimal_recovery` of so many latents."""
    return [_missing(held), _captured(held), _superposition(held, latents), _minimal(minimal)]


def _missing(held: Captured) -> Verdict:
    n, rows = len(held.shares), held.shares[0].n
    lost = [row for row, share in zip(held.directions, held.nonlinear, strict=True) if not share.low >= HELD]
    count = float(len(lost))
    advice = f"The latents hold {n - len(lost)} of the {n} directions of the state, in whatever form."
    return Verdict.judge(
        "missing_directions", Estimate(count, count, count, rows), direction="lower", threshold=0.0, good=advice,
        bad=f"{advice} Lost, or held in part: {'; '.join(map(name_direction, lost))}.",
    )  # fmt: skip


def _captured(held: Captured) -> Verdict:
    coordinates = ", ".join(f"z{i + 1} {max(share.value, 0):.2f}" for i, share in enumerate(held.coordinates))
    return Verdict.judge(
        "captured", held.shares[-1], direction="higher", threshold=HELD, null=0.0,
        good="Even the least held direction of the state is there, linearly.",
        bad=f"The latents hold least of {name_direction(held.directions[-1])}. Shares of the coordinates: "
            f"{coordinates}.",
    )  # fmt: skip


def _superposition(held: Captured, m: int) -> Verdict:
    """It fails only on evidence: where even the lower limit is above what noise may suggest."""
    numbers = held.measures
    extra, folded, number = numbers["superposed"], numbers["folded"], numbers["participation"]
    passed = bool(extra.low <= SUPERPOSED)
    bent = f" A nonlinear map finds {folded.value:.2f} directions more than a linear one: the latents are bent."
    advice = (
        f"The latents hold no more directions than there are of them; {number.value:.1f} coordinates of the state "
        f"share the {m}." + (bent if folded.low > SUPERPOSED else "")
        if passed else
        f"{numbers['held_nonlinear'].value:.1f} directions of the state are squeezed into {m} latents, of which a "
        f"linear map finds {numbers['held'].value:.1f}: use more latents."
    )  # fmt: skip
    return Verdict("superposition", extra.value, extra.low, extra.high, extra.n, null=None, threshold=SUPERPOSED,
                   direction="lower", passed=passed, advice=advice)  # fmt: skip


def _minimal(scores: Mapping[str, Estimate]) -> Verdict:
    few, every = scores["r2_minimal"].value, scores["r2"].value
    return Verdict.judge(
        "minimal_r2_lost", scores["r2_lost"], direction="lower", threshold=LOST,
        good=f"The minimal subspace gives the state as well as all latents do: R² {few:.3f} of {every:.3f}.",
        bad=f"All latents together give the state with R² {every:.3f}, the minimal subspace with {few:.3f}: some of it "
            "is held in bent form only, or the ladder was misread.",
    )  # fmt: skip
