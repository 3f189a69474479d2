"""An effort of the world, felt in latent coordinates: h moves, and what it decodes to moves with it.

    L_h(h, u) = L(g(h), J_g(h)·u)        g the decoder, J_g its Jacobian

Linear in u before L, it is homogeneous of degree one as L is. A decoder that folds would give directions for nothing:
the floor is a promise about its least singular value times that of L, and `effort_verdicts` holds it to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.energy.action.effort import Effort

__all__ = ["Pullback"]


@dataclass(frozen=True)
class Pullback:
    """An effort on latents, through a decoder."""

    effort: Effort
    decoder: Callable[[Tensor], Tensor]  # (..., d) → (..., p)
    floor: float

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return self.effort(*torch.func.jvp(self.decoder, (x,), (v,)))
