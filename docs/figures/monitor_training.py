"""The curves and the table of docs/how-to/monitor-training.md: a certificate during training, and where it could stop.

    python docs/figures/monitor_training.py

A LeJEPA is trained on the spiral world. The table has the first record at which the certificate passes, and the R² of
the state on 40,000 other pairs there and at the end.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt

import jepatlas as ja
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.data import PairStream, Transitions
from jepatlas.monitoring import LinearR2
from jepatlas.nn import MLPConfig
from jepatlas.objectives import LeJEPA
from jepatlas.training import OneCycleSchedule
from jepatlas.worlds import LatentWorld, Spiral

mpl.use("Agg")
STEPS, EVERY, BATCH, RHO, ENOUGH = 10_000, 500, 256, 0.95, 0.2
WORLD = LatentWorld(mixing=Spiral())
LR = 1e-2
SCHEDULE = OneCycleSchedule()
HERE = Path(__file__).parent


def r2(encoder: torch.nn.Module) -> float:
    """R² of the state on pairs that were not trained on."""
    pairs = Transitions().draw(WORLD, 40_000, torch_generator(1, "test"))
    metric = LinearR2()
    with torch.no_grad():
        metric.update(encoder(pairs.x), pairs.z)
    return metric.compute()


def train(seed: int) -> ja.Monitor:
    batches = PairStream(WORLD, Transitions(), batch_size=BATCH, seed=seed)
    with forked_rng(seed, "encoder"):
        encoder = MLPConfig().build(WORLD.observed_dim, WORLD.dim)
    objective = LeJEPA(encoder, seed=seed)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=LR)
    monitor = ja.Monitor(every=EVERY, rho=RHO, rows=8192, seed=seed)
    stopped = None
    start = time.process_time()
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = LR * SCHEDULE.factor(step, STEPS)
        batch = batches(step)
        h, h_next = encoder(batch.x), encoder(batch.x_next)
        objective.loss(h, h_next, step).total.backward()
        optimizer.step()
        optimizer.zero_grad()
        row = monitor.update(h, h_next, batch.z, step=step + 1)
        if row is not None and stopped is None and row.bound_whitened.high < ENOUGH:
            stopped = row.step, r2(encoder), time.process_time() - start
    took = time.process_time() - start
    seconds = sum(row.seconds for row in monitor.history)
    print(f"seed {seed}: stop {stopped}, end {STEPS} {r2(encoder):.4f}, {took:.0f} s, of which records {seconds:.1f} s")
    return monitor


if __name__ == "__main__":
    torch.set_num_threads(1)
    monitors = [train(seed) for seed in range(2)]
    monitors[0].plot()
    plt.savefig(HERE / "monitor_training.png", dpi=80)
    for row in monitors[0].history:
        print(row.step, {name: round(value, 4) for name, value in row.values().items()})
