"""A linear map between the latents of two agents that is refitted in closed form during training.

    n ← δn + b    S ← δS + S_batch (about the joint mean)    W = S_yx (S_xx + λ tr(S_xx)/d · I)⁻¹    δ = 1 − 1/memory

Latents drift, so past steps are discounted. W is fitted to the pairs of earlier steps, not to the rows on which it is
evaluated, which it could fit exactly if there are as many dimensions as rows. No gradient passes through the fit. The
stored sums have the size of the map, and are those of the joint batch of all processes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.distributed import mean_over_processes, world_size
from jepatlas.objectives.teaching.teaching_configs import RunningMapConfig

__all__ = ["RunningMap"]

MINIMUM_VARIANCE = 1e-12  # for constant latents


class RunningMap(nn.Module):
    """x (b, d_in) → y (b, d_out); returns the share of the variance of y that x does not explain."""

    count: Tensor
    mean: Tensor
    scatter: Tensor
    weight: Tensor
    offset: Tensor
    variance: Tensor

    def __init__(self, d_in: int, d_out: int, config: RunningMapConfig | None = None) -> None:
        super().__init__()
        self.config, self.d_in, self.d_out = config or RunningMapConfig(), d_in, d_out
        width = d_in + d_out
        shapes = {"count": (), "mean": (width,), "scatter": (width, width), "weight": (d_out, d_in), "offset": (d_out,)}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))
        # Total variance of y. Infinite before the first fit, so that the loss is 0 until then.
        self.register_buffer("variance", torch.tensor(torch.inf, dtype=torch.float64))
        self.observed: list[Tensor] = []

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """mean ‖y − W x − offset‖² / Σ Var(y): 0 at best, about 1 at chance. Gradients reach x and y but not W.

        The published loss is ‖y − W x‖². Dividing by the variance, which is treated as constant, makes weights
        comparable between agents.
        """
        predicted = x @ self.weight.to(x).T + self.offset.to(x)
        return (y - predicted).square().sum(1).mean() / self.variance.to(x)

    def observe(self, x: Tensor, y: Tensor) -> None:
        """Store the pairs of a micro-batch for the next fit. Without gradients, nothing is stored."""
        if torch.is_grad_enabled():
            self.observed.append(torch.cat([x.detach(), y.detach()], 1).double())

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        if not self.observed:
            return
        observed = torch.cat(self.observed)
        rows = len(observed) * world_size()
        self._update_moments(observed, rows)
        self.observed.clear()
        if self.variance.isfinite():
            due = (step + 1) % self.config.every == 0
        else:
            # The first fit waits for twice as many pairs as dimensions, if the memory ever holds that many.
            due = bool(self.count >= min(2 * self.d_in, self.config.memory * rows / 2))
        if due:
            self._fit()

    def _update_moments(self, rows: Tensor, count: int) -> None:
        centred = rows - self.mean  # the same point on all processes, close to the mean
        shift = mean_over_processes(centred.mean(0))
        scatter = mean_over_processes(centred.T @ centred) * world_size() - count * torch.outer(shift, shift)
        discount = 1 - 1 / self.config.memory
        kept = discount * self.count
        self.count.copy_(kept + count)
        self.scatter.mul_(discount).add_(scatter + torch.outer(shift, shift) * (kept * count / self.count))
        self.mean.add_(shift * (count / self.count))

    def _fit(self) -> None:
        d = self.d_in
        xx, yx = self.scatter[:d, :d], self.scatter[d:, :d]
        penalty = self.config.ridge * xx.trace() / d
        eye = torch.eye(d, dtype=xx.dtype, device=xx.device)
        # solve_ex does not raise for non-finite latents, which the training loop reports
        solution = torch.linalg.solve_ex(xx + penalty.clamp_min(MINIMUM_VARIANCE) * eye, yx.T).result
        self.weight.copy_(solution.T)
        self.offset.copy_(self.mean[d:] - self.weight @ self.mean[:d])
        self.variance.copy_((self.scatter[d:, d:].trace() / self.count).clamp_min(MINIMUM_VARIANCE))

    def flops(self, rows: int) -> float:
        """Average operations per step: the sums over `rows` pairs, and the fit (LU and two triangular solves)."""
        fit = 2 / 3 * self.d_in**3 + 2 * self.d_in**2 * self.d_out
        return 2 * rows * (self.d_in + self.d_out) ** 2 + fit / self.config.every
