"""KoLeo: push each latent away from its nearest neighbour, so that they spread over the sphere.

    L = −(1/b) Σ_i log ‖z_i − z_{nn(i)}‖,   z = h / ‖h‖

Neighbours are sought in the joint batch of all processes. Reference: "Spreading vectors for similarity search".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from jepatlas.core.distributed import gather_rows, rank

__all__ = ["koleo"]


def koleo(h_bd: Tensor, epsilon: float = 1e-8) -> Tensor:
    z = F.normalize(h_bd, dim=1)
    others = gather_rows(z)
    own = torch.arange(len(z), device=z.device)
    with torch.no_grad():
        cosines = z @ others.T
        cosines[own, own + rank() * len(z)] = -2  # nobody is his own neighbour
        nearest = cosines.argmax(1)
    return -torch.log((z - others[nearest]).norm(dim=1) + epsilon).mean()
