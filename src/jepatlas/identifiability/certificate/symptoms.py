"""What the verdicts of a certificate say, in the terms that a diagnosis reasons in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from jepatlas.core.records import Estimate, Verdict

__all__ = ["Symptoms"]

JUDGED = ("effective_rank", "coverage", "r2", "r2_inverse", "orthogonality", "stretch")
RELATED, SMALL = 0.25, 0.5
"""The linear R² of what is there, and its share of the nonlinear R², below which there is no linear relation."""
HELD = 0.02
"""R² that may be lost without the directions that hardly vary, and the others still hold all there is."""
DOMINANT, MOST = 0.9, 0.5
"""A warp or a shear must explain so much of what is nonlinear, and of all that is not linear, to be the one."""
NOTABLE = 0.02
"""Share of the variance from which a corruption is mentioned: what R² may lack."""
OF_ONE = {"nonlinear": 0.1, "noise": 0.2}
"""The same of a single direction's own variance: among many sound ones it is too small a share of all. More of noise,
because curves that are too fine for the rows at hand look like it."""


class Symptoms:
    """Numbers of verdicts by name; where something does not vary at all, its undefined shares count as zero."""

    def __init__(self, verdicts: Mapping[str, Verdict]) -> None:
        self.verdicts = verdicts
        self.failed = [name for name in JUDGED if not self.passed(name)]
        rank, coverage = verdicts["effective_rank"], verdicts["coverage"]
        self.width, self.live = int(rank.threshold or 0), int(rank.value)
        self.states, self.found = int(coverage.threshold or 0), int(coverage.value)
        self.copies = int(self.value("repeated_coordinates"))
        self.lost = self.states - self.found
        short = max(self.width - self.live - self.copies, 0)
        dead = self.width - int(self.value("varying_coordinates", self.width - short))
        # where the state is all there, coordinates that combine others have not collapsed: they are too many
        self.combined = max(short - dead, 0) if self.lost == 0 and self.spread_holds_all else 0
        self.collapsed = short - self.combined
        self.nonlinear = sum(self.value(f"share_{name}") for name in ("warp", "shear", "bend"))
        self.noise = self.value("share_noise")

    def value(self, name: str, absent: float = 0.0) -> float:
        return float(np.nan_to_num(self.verdicts[name].value)) if name in self.verdicts else absent

    def knows(self, name: str) -> bool:
        return name in self.verdicts

    def passed(self, name: str) -> bool:
        return self.verdicts[name].passed is True

    def advice(self, name: str) -> str:
        return self.verdicts[name].advice

    def estimate(self, name: str) -> Estimate:
        verdict = self.verdicts[name]
        return Estimate(verdict.value, verdict.low, verdict.high, verdict.n)

    def without(self, name: str) -> Estimate:
        """What is left of 1."""
        verdict = self.verdicts[name]
        return Estimate(1 - verdict.value, 1 - verdict.high, 1 - verdict.low, verdict.n)

    def counted(self, name: str) -> Estimate:
        """The share of directions that a count falls short of its threshold by."""
        verdict, all_of_them = self.verdicts[name], self.verdicts[name].threshold or 1.0
        value, low, high = (1 - count / all_of_them for count in (verdict.value, verdict.high, verdict.low))
        return Estimate(value, low, high, verdict.n)

    @property
    def failed_by_value(self) -> bool:
        """Whether something fails by more than the width of its interval; NaN does."""
        return any(not _meets(self.verdicts[name]) for name in self.failed)

    @property
    def spread_holds_all(self) -> bool:
        """Whether the directions that vary give the state as well as all of them do."""
        return self.value("r2_varying", -np.inf) >= self.value("r2") - HELD

    @property
    def unrelated(self) -> bool:
        """Whether a linear map recovers next to nothing, or much less than some other function does."""
        return self.value("r2") < max(RELATED * self.found / self.states, SMALL * self.value("r2_nonlinear"))

    @property
    def curled(self) -> bool:
        """Whether some other function recovers more than a linear map, and more than next to nothing."""
        return self.value("r2_nonlinear") > max(RELATED * self.found / self.states, self.value("r2"))

    def hidden(self, part: Literal["nonlinear", "noise"]) -> bool:
        """Whether it is much of one direction, though little of all."""
        little = (self.nonlinear if part == "nonlinear" else self.noise) <= NOTABLE
        return little and self.value(f"worst_{part}") > OF_ONE[part]

    @property
    def curved(self) -> bool:
        return self.nonlinear > NOTABLE or self.hidden("nonlinear")

    @property
    def noisy(self) -> bool:
        return self.noise > NOTABLE or self.hidden("noise")

    @property
    def bent(self) -> bool:
        """Whether a shear is one of curves, and not of a linear map."""
        linear = all(self.passed(name) for name in ("r2", "r2_inverse", "orthogonality"))
        return self.curve == "shear" and (not linear or self.hidden("nonlinear"))

    @property
    def leaning(self) -> bool:
        """Whether some directions are stretched more than others, and still are where the warp, if any, is undone."""
        limit = self.verdicts["stretch"].threshold or 0.0
        straight = self.knows("stretch_unwarped") and self.verdicts["stretch_unwarped"].high <= limit
        return not self.passed("stretch") and not straight

    @property
    def warped_latents(self) -> bool:
        """Whether the warp is along the latents' own axes, rather than along the states'."""
        return self.value("r2_unwarped_latents", -np.inf) == self.value("r2_unwarped")

    @property
    def scaled(self) -> bool:
        """Whether the map is a multiple of a rotation: far from one, with all directions stretched alike."""
        return self.value("orthogonality_raw") > (self.verdicts["stretch"].threshold or 0.0)

    @property
    def curve(self) -> Literal["warp", "shear", "bend"]:
        """The kind of map that explains what is nonlinear."""
        along, across = self.value("share_warp"), self.value("share_shear")
        needed = max(DOMINANT * self.nonlinear, MOST * (self.nonlinear + self.noise))
        if along + across < needed:
            return "bend"
        return "warp" if along >= across else "shear"


def _meets(verdict: Verdict) -> bool:
    limit = verdict.threshold or 0.0
    return verdict.value >= limit if verdict.direction == "higher" else verdict.value <= limit
