"""Whether a certificate passes, by what there is to decide by:

    with the truth       the diagnosis: a rotation passes
    without, or no ρ     the better of the two bounds, and every check of the audit and of the ladder

Undecided is no pass: it is None, as it is where nothing could be judged.
"""

from __future__ import annotations

from jepatlas.core.records import Verdict
from jepatlas.identifiability import Diagnosis

__all__ = ["better_bound", "decide"]


def decide(diagnosis: Diagnosis | None, verdicts: list[Verdict], checks: list[Verdict], unread: bool) -> bool | None:
    """With the truth the diagnosis decides; without, the better of the two bounds together with all checks.

    A ladder that could not be read leaves it open where ρ was estimated from it; beside a given ρ it only informs.
    """
    if diagnosis is not None:
        return None if diagnosis.kind == "undecided" else diagnosis.kind == "rotation"
    bound = better_bound(verdicts)
    answers = [bound and bound.passed, *(check.passed for check in checks if check.threshold is not None)]
    answers += [None] if unread else []
    return False if False in answers else None if None in answers else True


def better_bound(verdicts: list[Verdict]) -> Verdict | None:
    """That of the latents as they are, or whitened; None where there is none."""
    bounds = [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]
    order = {True: 0, None: 1, False: 2}
    return min(bounds, key=lambda verdict: (order[verdict.passed], verdict.high)) if bounds else None
