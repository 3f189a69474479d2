"""The training loop, the only one.

It trains one module (the objective) on batches that are functions of the step, and knows nothing of worlds,
encoders or losses. A run that is killed and resumed takes the same steps as one that was not.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from torch import Tensor, nn

from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import rank
from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Verdict
from jepatlas.core.seeding import derive
from jepatlas.training.batch_size import check_batch
from jepatlas.training.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint
from jepatlas.training.config import TrainingConfig
from jepatlas.training.health import Health, refuse_bad_batches
from jepatlas.training.interruption import Interruption
from jepatlas.training.journal import Journal
from jepatlas.training.memory import keep_freed_memory
from jepatlas.training.parallel import averaged, parallel, unsynchronised, wait_for_all
from jepatlas.training.progress import TrainingProgress
from jepatlas.training.state import TrainingState
from jepatlas.training.threads import threads

__all__ = ["Outcome", "train"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended, after how many steps; a run that failed says why."""

    status: Literal["finished", "interrupted", "failed"]
    step: int
    verdict: Verdict | None = None


def train(
    objective: Any,
    batches: Batches,
    config: TrainingConfig,
    folder: Path | str,
    *,
    recipe: str,
    console: Console | None = None,
    until: int | None = None,
) -> Outcome:
    """Train, or go on from the newest checkpoint in `folder`; `recipe` is the fingerprint it must carry.

    `until` ends a stretch of the run after so many of its steps, for batches that depend on what was learned before.
    """
    end = config.steps if until is None else min(until, config.steps)
    with threads(config.threads):
        return _Run(objective, batches, config, Path(folder), recipe).train(console, end)


class _Run:
    def __init__(self, objective: Any, batches: Batches, config: TrainingConfig, folder: Path, recipe: str) -> None:
        self.config, self.batches, self.folder, self.recipe = config, batches, folder, recipe
        self.device = config.check_machine()
        if self.device.type == "cpu":
            keep_freed_memory()
        if not any(p.requires_grad for p in objective.parameters()):
            raise InputError("There is nothing to train: no parameter of the objective requires a gradient.")
        self.objective = objective.to(self.device).train()
        self.module = parallel(objective, config.parallel)
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        # The learning rate is a tensor-free float set at every step, so it needs no place in the checkpoint.
        self.optimizer = torch.optim.AdamW(
            _groups(self.parameters, config), lr=config.lr, betas=config.betas, fused=True
        )
        self.state = TrainingState(objective, self.optimizer, config.ema)
        self.health = Health(config.collapse, config.grace)

    def train(self, console: Console | None, end: int) -> Outcome:
        start = self._resume()
        if start < end:
            self._look_at_batch(start * self.config.accumulate)  # before anything is written
        lead = rank() == 0
        progress = TrainingProgress(console if lead else None, self.folder.name, start, self.config.steps)
        journal = Journal(self.folder, start, self.config.track) if lead else nullcontext()
        with journal, Interruption() as interruption, progress, torch.random.fork_rng():
            for step in range(start, end):
                terms, x = self._step(step)
                done = step + 1
                progress.advance(done)
                stop = interruption.requested(self.device)
                save = done % self.config.checkpoint_every == 0 or done == end
                due = done % self.config.log_every == 0 or save
                if due or stop:
                    values = averaged(terms)
                    if isinstance(journal, Journal):
                        journal.write(done, values)
                    progress.report(done, values)
                    if verdict := self._examine(done, values["loss"], x, due):
                        return Outcome("failed", done, verdict)
                if save or stop:  # only what was examined: a checkpoint never holds a NaN
                    self._save(done)
                if stop and done < self.config.steps:
                    return Outcome("interrupted", done)
        return Outcome("finished", end)

    def _step(self, step: int) -> tuple[dict[str, Tensor], Tensor]:
        """One optimiser step; returns its loss terms, means over micro-batches, and the last one's observations."""
        config, parts = self.config, self.config.accumulate
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * config.schedule.factor(step, config.steps)
        last, before = (step + 1) * parts - 1, []
        for micro in range(step * parts, last):
            with unsynchronised(self.module):
                before.append(self._descend(micro)[0])
        terms, x = self._descend(last)
        if config.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.objective.after_step(step)
        self.state.update_average(step)
        return {name: sum((part[name] for part in before), term) / parts for name, term in terms.items()}, x

    def _descend(self, micro: int) -> tuple[dict[str, Tensor], Tensor]:
        """Add one micro-batch's gradient."""
        self._reseed(micro)
        batch = self.batches(micro)
        mixed = self.config.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed):
            loss: Loss = self.module(batch, micro)
        (loss.total / self.config.accumulate).backward()
        return {"loss": loss.total.detach(), **loss.terms}, batch.x

    def _reseed(self, micro: int) -> None:
        """The dropout of a user's own encoder draws from the global generator, which must not tell a resumed run."""
        seed = derive(rank(), self.recipe, micro)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _look_at_batch(self, micro: int) -> None:
        with torch.random.fork_rng():
            check_batch(self.objective, self.batches(micro).x, self._encode, self.config)

    @torch.no_grad()
    def _encode(self, x: Tensor) -> Tensor:
        self.objective.eval()  # a look must leave no trace, not even in running statistics
        h = self.objective.encode(x)
        self.objective.train()
        return h

    def _examine(self, done: int, loss: float, x: Tensor, due: bool) -> Verdict | None:
        verdict = self.health.check(done, loss, self._encode(x), due=due)
        if verdict is not None and verdict.name == "finite_loss":
            parts, first = self.config.accumulate, max(0, done - self.config.log_every)
            refuse_bad_batches(self.batches, range(first * parts, done * parts), parts)
        return verdict

    def _resume(self) -> int:
        newest = latest_checkpoint(self.folder / "checkpoints")
        if newest is None:
            return 0
        checkpoint = load_checkpoint(newest, self.recipe)
        self.state.restore(checkpoint.tensors)
        self.health.flat = checkpoint.flat
        return checkpoint.step

    def _save(self, step: int) -> None:
        checkpoint = Checkpoint(step, self.state.tensors(), self.health.flat)
        if rank() == 0:
            save_checkpoint(self.folder / "checkpoints", checkpoint, self.recipe, self.config.keep)
        wait_for_all()


def _groups(parameters: list[nn.Parameter], config: TrainingConfig) -> list[dict[str, Any]]:
    """Weights that decay, and those that do not."""
    kept = [] if config.decayed == "all" else [p for p in parameters if p.ndim < 2]
    decay = [p for p in parameters if config.decayed == "all" or p.ndim >= 2]
    rates = ((decay, config.weight_decay), (kept, 0.0))
    return [{"params": group, "weight_decay": rate} for group, rate in rates if group]
