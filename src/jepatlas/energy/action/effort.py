"""A local effort L(x, v): what it takes to move from x with velocity v, per unit of time.

    L(x, s·v) = s·L(x, v) for s > 0        L(x, v) ≥ c‖v‖ with some c > 0

The first makes the action of a path a length, the same however fast it is gone. With a quadratic L and free time the
infimum would be 0: go slowly. The second keeps distinct points apart. L(x, −v) may differ from L(x, v), and be +∞.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Effort", "norm"]


class Effort(Protocol):
    """Differentiable where it is finite."""

    @property
    def floor(self) -> float:
        """c, with L(x, v) ≥ c‖v‖."""
        ...

    def __call__(self, x: Tensor, v: Tensor) -> Tensor: ...  # (..., d), (..., d) → (...)


def norm(v: Tensor) -> Tensor:
    """‖v‖ over the last dimension, with gradient 0 at 0 where torch's own would be NaN."""
    squares = v.square().sum(-1)
    still = squares == 0
    return torch.where(still, 1.0, squares).sqrt() * ~still
