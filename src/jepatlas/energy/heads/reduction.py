"""From components to one energy:  α · max_i c_i + (1 − α) · mean_i c_i,  a quasimetric if each component is one.

Libraries differ on which of the two α weighs: here it is the maximum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError

__all__ = ["MaxMean", "check_chunks", "check_floor"]


class MaxMean(nn.Module):
    """The weight of the maximum is learned, within (0, 1), or fixed, within [0, 1]."""

    def __init__(self, alpha: float = 0.5, learned: bool = True) -> None:
        super().__init__()
        if not (0 < alpha < 1 if learned else 0 <= alpha <= 1):
            allowed = "between 0 and 1, both excluded, where it is learned" if learned else "in [0, 1]"
            raise InputError(f"alpha, the weight of the largest component, must be {allowed}, but {alpha} was given.")
        if learned:
            self.logit = nn.Parameter(torch.tensor(math.log(alpha / (1 - alpha))))
        self.fixed = None if learned else alpha

    @property
    def alpha(self) -> Tensor | float:
        return torch.sigmoid(self.logit) if self.fixed is None else self.fixed

    def forward(self, components: Tensor) -> Tensor:
        """Over the last dimension; a constant ∞ where a component is infinite, so that α · ∞ has no gradient."""
        infinite = components.detach().amax(-1) == math.inf
        finite = components.masked_fill(infinite[..., None], 0.0)
        energy = self.alpha * finite.max(-1).values + (1 - self.alpha) * finite.mean(-1)
        return energy.masked_fill(infinite, math.inf)


def check_chunks(name: str, width: int, chunks: int) -> int:
    """Coordinates in each chunk."""
    if chunks < 1:
        raise InputError(f"{name} needs chunks >= 1, but {chunks} was given.")
    if width < 1 or width % chunks:
        above = chunks * math.ceil(max(width, 1) / chunks)
        fitting = [str(number) for number in range(1, width + 1) if width % number == 0]
        others = f", or one of these numbers of chunks: {', '.join(fitting)}" if fitting else ""
        raise InputError(
            f"{name} splits the latent into chunks of equal size, but a width of {width} does not divide into "
            f"{chunks} chunks. Use a width that does, such as {above}{others}."
        )
    return width // chunks


def check_floor(floor: float) -> None:
    if not 0 <= floor < math.inf:
        raise InputError(f"The floor c of an energy, E >= c‖x − y‖, must be finite and not negative, not {floor}.")
