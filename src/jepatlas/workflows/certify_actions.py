"""Certificates of dynamics under actions: is h' = Ah + Bu the dynamics of the true state, in rotated coordinates?

passes      if actions were exciting, and A and B are conjugate to those of the state
undecided   without the states of both steps, because then A and B cannot be compared
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.identifiability import certify_dynamics
from jepatlas.identifiability.standards import UNEXPLAINED

__all__ = ["ActionFindings"]

REQUIRED = ("persistent_excitation", "conjugacy_a", "conjugacy_b")


@dataclass(frozen=True)
class ActionFindings:
    """Verdicts on the dynamics of latents under actions."""

    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], *, seed: int, replicates: int = 500) -> Self:
        """From `h`, `u` and `h_next` and, if known, `z`, `z_next` and `groups`; rows are steps."""
        states = {name: arrays[name] for name in ("z", "z_next") if name in arrays}
        found = certify_dynamics(
            arrays["h"],
            arrays["u"],
            arrays["h_next"],
            **states,
            groups=arrays.get("groups"),
            seed=seed,
            replicates=replicates,
        )
        return cls(tuple(found))

    @property
    def passed(self) -> bool | None:
        by_name = {verdict.name: verdict.passed for verdict in self.verdicts}
        answers = [by_name.get(name) for name in REQUIRED]
        if False in answers:
            return False
        return None if None in answers or not self.effective else True

    @property
    def effective(self) -> bool:
        """Whether actions affect the latents. If they do not, B is noise for latents and states alike."""
        return next(verdict.low for verdict in self.verdicts if verdict.name == "action_share") > UNEXPLAINED

    @property
    def sentence(self) -> str:
        """The main numbers, and what was not excited."""
        by_name = {verdict.name: verdict for verdict in self.verdicts}
        linear = by_name["linear_dynamics"]
        excitation = by_name["persistent_excitation"]
        text = (
            f"Under actions: a linear map predicts the next latent with held-out R² {linear.value:.3f} "
            f"({linear.null:.3f} with shuffled actions); excitation {excitation.value:.3g}"
        )
        if "conjugacy_a" in by_name:
            a = by_name["conjugacy_a"]
            text += f"; A and B differ from those of the state by {a.value:.3g} and {by_name['conjugacy_b'].value:.3g}."
            if a.threshold is None:
                text += " These errors have no threshold, because there are surplus dimensions."
        else:
            text += ". Give z and z_next, the true states of both steps, to compare A and B with those of the state."
        if not self.effective:
            text += " No effect of the actions was found: check that rows of u belong to those of h."
        return text if excitation.passed is not False else f"{text} Not excited: {excitation.advice}"
