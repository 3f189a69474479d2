"""What latents hold of a state that is known, as verdicts: what is held least, and what is squeezed in."""

from __future__ import annotations

from jepatlas.core.records import Verdict
from jepatlas.identifiability.dimension.captured import Captured
from jepatlas.identifiability.dimension.state_directions import name_direction

__all__ = ["captured_verdicts"]

HELD = 0.9
"""Share of a direction's variance from which the latents count as holding it."""
SUPERPOSED = 0.1
"""State directions above the number of latents that the noise of a nonlinear regression may suggest."""


def captured_verdicts(held: Captured, latents: int) -> list[Verdict]:
    """From `captured` of so many latents."""
    return [_captured(held), _superposition(held, latents)]


def _captured(held: Captured) -> Verdict:
    coordinates = ", ".join(f"z[{i}] {max(share.value, 0):.2f}" for i, share in enumerate(held.coordinates))
    return Verdict.judge(
        "captured",
        held.shares[-1],
        direction="higher",
        threshold=HELD,
        null=0.0,
        good="Even the least held direction of the state is there, linearly.",
        bad=f"The latents hold least of {_least(held)}. Shares of the coordinates' variance that they hold: "
        f"{coordinates}.",
    )


def _least(held: Captured) -> str:
    """A mixture is one of coordinates at variance one, whatever units they came in."""
    name = name_direction(held.directions[-1])
    return f"{name} (each z at variance one)" if "·" in name else name


def _superposition(held: Captured, m: int) -> Verdict:
    """It fails only on evidence: where even the lower limit is above what noise may suggest."""
    numbers = held.measures
    extra, folded, number = numbers["superposed"], numbers["folded"], numbers["participation"]
    passed = bool(extra.low <= SUPERPOSED)
    bent = f" A nonlinear map finds {folded.value:.2f} directions more than a linear one: the latents are bent."
    advice = (
        f"The latents hold no more directions than there are of them; {number.value:.1f} coordinates of the state "
        f"share the {m}." + (bent if folded.low > SUPERPOSED else "")
        if passed
        else f"{numbers['held_nonlinear'].value:.1f} directions of the state are squeezed into {m} latents, of which a "
        f"linear map finds {numbers['held'].value:.1f}: use more latents."
    )
    return Verdict(
        "superposition",
        extra.value,
        extra.low,
        extra.high,
        extra.n,
        null=None,
        threshold=SUPERPOSED,
        direction="lower",
        passed=passed,
        advice=advice,
    )
