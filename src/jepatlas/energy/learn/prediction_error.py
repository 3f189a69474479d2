"""A JEPA's squared prediction error, taken for an energy: ‖p(f(x)) − f(y)‖².

It is small where y is what follows x, so it is often used as if it were the effort of going from x to y. It is not:
E(x, x) > 0 unless the predictor stays, and the way over a midpoint may be far cheaper than the direct one, because
squares are. It is here to be audited.
"""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["PredictionError"]


class PredictionError(nn.Module):
    guaranteed_quasimetric = False
    pseudo = True

    def __init__(self, encoder: nn.Module, predictor: nn.Module | None = None) -> None:
        """Without a predictor it is that of an objective which predicts that nothing changes: ‖f(x) − f(y)‖²."""
        super().__init__()
        self.encoder = encoder
        self.predictor = nn.Identity() if predictor is None else predictor

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., p), (..., p) → (...)"""
        return (self.predictor(self.encoder(x)) - self.encoder(y)).square().sum(-1)
