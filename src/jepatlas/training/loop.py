"""The training loop.

It trains one objective on batches that are functions of the step. A run that is killed and resumed takes the same steps
as an uninterrupted one, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from rich.console import Console
from torch import Tensor, nn

from jepatlas.core.arrays import check_latents
from jepatlas.core.contracts import Batches, Objective
from jepatlas.core.distributed import gather_values, rank
from jepatlas.core.errors import InputError
from jepatlas.core.processes import torch_threads
from jepatlas.core.records import Loss, Verdict
from jepatlas.core.seeding import derive
from jepatlas.training.checkpoint import (
    Checkpoint,
    TrainingState,
    latest_checkpoint,
    load_checkpoint,
    remove_superseded,
    save_checkpoint,
)
from jepatlas.training.data_parallel import (
    average_terms,
    gradient_accumulation,
    lock_for_all,
    parallelise,
    wait_for_all,
)
from jepatlas.training.health import HealthCheck, check_batches_finite
from jepatlas.training.metrics_log import MetricsLog
from jepatlas.training.progress_display import TrainingProgress
from jepatlas.training.runtime import Interruption, keep_freed_memory
from jepatlas.training.training_config import TrainingConfig

__all__ = ["Outcome", "check_batch_size", "train"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended and after how many steps; a failed run has a verdict."""

    status: Literal["finished", "interrupted", "failed"]
    step: int
    verdict: Verdict | None = None


def train(
    objective: Objective,
    batches: Batches,
    config: TrainingConfig,
    folder: Path | str,
    *,
    recipe: str,
    console: Console | None = None,
    until: int | None = None,
) -> Outcome:
    """Train, or resume from the newest checkpoint in `folder`.

    `objective` is an `nn.Module`. `recipe` is a fingerprint that the checkpoint must match. `until` stops after that
    many steps of the run, for batches that depend on the model trained so far.
    """
    end = config.steps if until is None else min(until, config.steps)
    with lock_for_all(Path(folder)), torch_threads(config.threads):
        return _Run(objective, batches, config, Path(folder), recipe).train(console, end)


class _Run:
    def __init__(
        self, objective: Objective, batches: Batches, config: TrainingConfig, folder: Path, recipe: str
    ) -> None:
        self.config, self.batches, self.folder, self.recipe = config, batches, folder, recipe
        self.device = config.check_machine()
        if self.device.type == "cpu":
            keep_freed_memory()
        self.objective = objective
        self.network = cast(nn.Module, objective)  # the same module, as torch sees it
        if not any(parameter.requires_grad for parameter in self.network.parameters()):
            raise InputError("There is nothing to train: no parameter of the objective requires a gradient.")
        self.network.to(self.device).train()
        self.module = parallelise(self.network, config.parallel)
        self.parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        # The learning rate is set at every step, so it is not part of the checkpoint.
        self.optimizer = torch.optim.AdamW(
            _parameter_groups(self.parameters, config), lr=config.lr, betas=config.betas, fused=True
        )
        self.state = TrainingState(self.network, self.optimizer, config.ema)
        self.health = HealthCheck(config.collapse, config.grace)

    def train(self, console: Console | None, end: int) -> Outcome:
        start = self._resume()
        if start < end:
            self._check_first_batch(start * self.config.accumulate)  # before anything is written
        lead = rank() == 0
        progress = TrainingProgress(console if lead else None, self.folder.name, start, self.config.steps)
        metrics = MetricsLog(self.folder, start, self.config.track) if lead else nullcontext()
        with metrics, Interruption() as interruption, progress, torch.random.fork_rng():
            for step in range(start, end):
                terms, x = self._step(step)
                done = step + 1
                progress.advance(done)
                stop = interruption.requested(self.device)
                save = done % self.config.checkpoint_every == 0 or done == end
                due = done % self.config.log_every == 0 or save
                if due or stop:
                    values = average_terms(terms)
                    if isinstance(metrics, MetricsLog):
                        metrics.write(done, values)
                    progress.report(done, values)
                    verdict = self._check_health(done, values["loss"], x, due)
                    if verdict is not None:
                        return Outcome("failed", done, verdict)
                if save or stop:  # after the health check, so a checkpoint never holds a NaN
                    self._save(done)
                if stop and done < self.config.steps:
                    return Outcome("interrupted", done)
        return Outcome("finished", end)

    def _step(self, step: int) -> tuple[dict[str, Tensor], Tensor]:
        """One optimiser step. Returns the loss terms (means over micro-batches) and the last observations."""
        config, parts = self.config, self.config.accumulate
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * config.schedule.factor(step, config.steps)
        last = (step + 1) * parts - 1
        earlier = []
        for micro in range(step * parts, last):
            with gradient_accumulation(self.module):
                earlier.append(self._backward(micro)[0])
        terms, x = self._backward(last)
        if config.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.objective.after_step(step)
        self.state.update_average(step)
        return {name: sum((part[name] for part in earlier), term) / parts for name, term in terms.items()}, x

    def _backward(self, micro: int) -> tuple[dict[str, Tensor], Tensor]:
        """Add the gradient of one micro-batch."""
        self._reseed(micro)
        batch = self.batches(micro)
        mixed = self.config.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss: Loss = self.module(batch, micro)
        (loss.total / self.config.accumulate).backward()
        return {"loss": loss.total.detach(), **loss.terms}, batch.x

    def _reseed(self, micro: int) -> None:
        """Make dropout of a user's encoder, which uses the global generator, reproducible after a resume."""
        seed = derive(rank(), self.recipe, micro)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _check_first_batch(self, micro: int) -> None:
        with torch.random.fork_rng():
            _check_batch(self.objective, self.batches(micro).x, self._encode, self.config)

    @torch.no_grad()
    def _encode(self, x: Tensor) -> Tensor:
        self.network.eval()  # do not update running statistics
        h = self.objective.encode(x)
        self.network.train()
        return h

    def _check_health(self, done: int, loss: float, x: Tensor, due: bool) -> Verdict | None:
        verdict = self.health.check(done, loss, self._encode(x), due=due)
        if verdict is not None and verdict.name == "finite_loss":
            parts, first = self.config.accumulate, max(0, done - self.config.log_every)
            check_batches_finite(self.batches, range(first * parts, done * parts), parts)
        return verdict

    def _resume(self) -> int:
        folder = self.folder / "checkpoints"
        newest = latest_checkpoint(folder)
        if newest is None:
            return 0
        checkpoint = load_checkpoint(newest, self.recipe)
        self.state.restore(checkpoint.tensors)
        self.health.flat = checkpoint.flat
        if rank() == 0:  # the run may have been killed before it could
            remove_superseded(folder, self.config.keep, self.config.checkpoint_every)
        return checkpoint.step

    def _save(self, step: int) -> None:
        checkpoint = Checkpoint(step, self.state.tensors(), self.health.flat)
        if rank() == 0:
            config = self.config
            save_checkpoint(self.folder / "checkpoints", checkpoint, self.recipe, config.keep, config.checkpoint_every)
        wait_for_all()


def _parameter_groups(parameters: list[nn.Parameter], config: TrainingConfig) -> list[dict[str, Any]]:
    """Parameters with weight decay, and those without."""
    if config.decayed == "all":
        return [{"params": parameters, "weight_decay": config.weight_decay}]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def check_batch_size(objective: Objective, rows: int, dim: int) -> None:
    """Raise InputError if a micro-batch of `rows` rows (over all processes) is too small for the objective."""
    smallest = objective.smallest_batch(dim)
    if rows < smallest:
        raise InputError(
            f"A batch of {rows} is too small: {type(objective).__name__} with {dim} latent dimensions needs at least "
            f"{smallest} pairs. Raise batch_size (--batch-size), or lower accumulate."
        )


def _check_batch(objective: Objective, x: Tensor, encode: Callable[[Tensor], Tensor], config: TrainingConfig) -> None:
    """Check the first micro-batch, on all processes alike: number of rows, and the shape of the latents."""
    rows = gather_values(len(x))
    # Joint statistics assume that all processes have equally many rows.
    parts = len(rows) * config.accumulate
    if any(count * parts != config.batch_size for count in rows):
        found = " or ".join(map(str, sorted(set(rows))))
        raise InputError(
            f"batch_size is {config.batch_size} for {len(rows)} process(es) with accumulate {config.accumulate}, so "
            f"each batch must have {config.batch_size / parts:g} rows, but has {found}. Set batch_size to the rows of "
            "one step in total, or provide batches of that size."
        )
    shape = encode(x).shape
    check_latents(shape, len(x))
    check_batch_size(objective, sum(rows), shape[1])
