"""The map between two agents' latents while one of them, or both, are still learning: fitted anew in closed form.

    n ← δn + b    S ← δS + S_batch (about the joint mean)    W = S_yx (S_xx + λ tr(S_xx)/d · I)⁻¹    δ = 1 − 1/memory

Latents drift, so pairs of past steps count less and less. W is fitted to what was seen before a step, not to the rows
it is then used on: with as many dimensions as rows it would know those by heart. No gradient goes through the fit. What
is remembered has the size of the map, not of the data, and is that of the joint batch of all processes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.distributed import mean_over_processes, world_size
from jepatlas.objectives.teaching.teaching_configs import RunningMapConfig

__all__ = ["RunningMap"]

LEAST = 1e-12  # variance of latents that do not vary


class RunningMap(nn.Module):
    """x (b, d_in) → y (b, d_out), and what share of y's variance it leaves untold."""

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
        # Of y, in all. Infinite before the first fit: what is told through no map counts nothing.
        self.register_buffer("variance", torch.tensor(torch.inf, dtype=torch.float64))
        self.watched: list[Tensor] = []

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """mean ‖y − W x − offset‖² / Σ Var(y), with gradients to x and y and none to W: 0 at best, about 1 at chance.

        Published as ‖y − W x‖², in the units of y. Divided by a variance that counts as given, a weight means the same
        for all agents.
        """
        told = x @ self.weight.to(x).T + self.offset.to(x)
        return (y - told).square().sum(1).mean() / self.variance.to(x)

    def watch(self, x: Tensor, y: Tensor) -> None:
        """Pairs to be remembered after this step, of all its micro-batches; without gradients it is no step, but a
        look, which changes nothing."""
        if torch.is_grad_enabled():
            self.watched.append(torch.cat([x.detach(), y.detach()], 1).double())

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        if not self.watched:
            return
        watched = torch.cat(self.watched)
        rows = len(watched) * world_size()
        self._remember(watched, rows)
        self.watched.clear()
        begun = self.variance.isfinite()
        # The first map waits for twice as many pairs as dimensions, where as many will ever be remembered.
        enough = self.count >= min(2 * self.d_in, self.config.memory * rows / 2)
        if (step + 1) % self.config.every == 0 if begun else enough:
            self._fit()

    def _remember(self, rows: Tensor, count: int) -> None:
        centred = rows - self.mean  # about one point for all processes, and near their mean
        shift = mean_over_processes(centred.mean(0))
        scatter = mean_over_processes(centred.T @ centred) * world_size() - count * torch.outer(shift, shift)
        keep = 1 - 1 / self.config.memory
        kept = keep * self.count
        self.count.copy_(kept + count)
        self.scatter.mul_(keep).add_(scatter + torch.outer(shift, shift) * (kept * count / self.count))
        self.mean.add_(shift * (count / self.count))

    def _fit(self) -> None:
        d = self.d_in
        xx, yx = self.scatter[:d, :d], self.scatter[d:, :d]
        penalty = self.config.ridge * xx.trace() / d
        eye = torch.eye(d, dtype=xx.dtype, device=xx.device)
        # unchecked: of latents that are not finite the loop has more to say
        self.weight.copy_(torch.linalg.solve_ex(xx + penalty.clamp_min(LEAST) * eye, yx.T).result.T)
        self.offset.copy_(self.mean[d:] - self.weight @ self.mean[:d])
        self.variance.copy_((self.scatter[d:, d:].trace() / self.count).clamp_min(LEAST))

    def flops(self, rows: int) -> float:
        """Of one step, on average: the sums over `rows` pairs, and the fit (LU factors, two triangular solves)."""
        fit = 2 / 3 * self.d_in**3 + 2 * self.d_in**2 * self.d_out
        return 2 * rows * (self.d_in + self.d_out) ** 2 + fit / self.config.every
