"""Fit a least-action energy to observed steps. Everything is chosen from the data, and reported as verdicts.

Some episodes are held out. Whether cells are divided (`joins`) and how much evidence an edge needs (`LEVELS`) is the
strictest choice with which held-out ways of eight steps stay cheap: at most 1% of them may cost more than two steps and
twice their energy without any demand. Reversed and shuffled ways are not used for this choice, because one can go
back where steps can be undone; how many of them are cheap is reported. In the end the held-out episodes are added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Experience, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import success_rate
from jepatlas.energy.energy_configs import LeastActionConfig
from jepatlas.energy.least_action.cell_graph import CellGraph, observe
from jepatlas.energy.least_action.cells import Cells, choose_cells, nearest_centres
from jepatlas.energy.least_action.joins import divided_cells, typical_visits
from jepatlas.energy.least_action.least_action import LeastAction
from jepatlas.energy.least_action.state_sequences import StateSequences

__all__ = ["fit_least_action"]

LEVELS = (0.8, 0.5, 0.2, 0.0)  # of the evidence for an edge, strictest first
LOST = 0.01
TESTED = 4000  # ways
LAG = 8  # steps of a way
SLACK = 2.0
HELD = 0.1  # of the episodes


def fit_least_action(
    experience: Experience,
    config: LeastActionConfig | None = None,
    *,
    held: Experience | None = None,
    seed: int = 0,
) -> LeastAction:
    """The energy of the observed steps; `held` are steps of other episodes, by default a tenth of the episodes."""
    config = config or LeastActionConfig()
    if held is None:
        experience, held = _hold_out(experience, seed)
    states = StateSequences.of(experience)
    cells = choose_cells(states.h_nd, config.cells, per_cell=config.per_cell, most=config.most_cells, seed=seed)
    whole = np.zeros(len(cells.centres), dtype=bool)
    lax = LeastAction(observe(states, cells, whole, whole.astype(int)), level=0.0)
    tested = _held_ways(held, lax, seed)
    chosen = lax
    if not cells.exact:
        chosen = _strictest(lax, _divided(states, cells), tested)
    verdicts = _verdicts(chosen, states, cells, tested, seed)
    energy = chosen.add(held)
    energy.verdicts = verdicts
    return energy


def _divided(states: StateSequences, cells: Cells) -> CellGraph:
    mask = divided_cells(states, cells)
    return observe(states, cells, mask, typical_visits(states, cells, mask))


@dataclass(frozen=True)
class _Ways:
    """Held-out stretches of episodes: their ends, and the cost that is still cheap between these."""

    x: np.ndarray  # (m, d)
    y: np.ndarray  # (m, d)
    cheap: np.ndarray  # (m,)

    def cheap_with(self, energy: LeastAction) -> np.ndarray:
        return _energies(energy, self.x, self.y) <= self.cheap

    def lost_by(self, energy: LeastAction) -> float:
        """The share that is not cheap. Ends in divided cells do not count: what is lost there is not a way."""
        divided = energy.graph.divided
        ends = np.stack([nearest_centres(end, energy.graph.centres) for end in (self.x, self.y)])
        whole = ~divided[ends].any(0)
        return 1.0 - float(self.cheap_with(energy)[whole].mean()) if whole.any() else 1.0

    def cheap_back(self, energy: LeastAction) -> np.ndarray:
        return _energies(energy, self.y, self.x) <= self.cheap

    def cheap_shuffled(self, energy: LeastAction, rng: np.random.Generator) -> np.ndarray:
        return _energies(energy, self.x, self.y[rng.permutation(len(self.y))]) <= self.cheap


def _held_ways(held: Experience, lax: LeastAction, seed: int) -> _Ways:
    """At most TESTED stretches of LAG steps, or of as many as the longest run has."""
    states = StateSequences.of(held)
    lag = int(min(LAG, np.bincount(states.run).max() - 1))
    first = np.flatnonzero(states.run[:-lag] == states.run[lag:])
    first = first[(states.h_nd[first] != states.h_nd[first + lag]).any(1)]
    if not len(first):
        raise InputError("No held-out step changes the state, so nothing can be tested. Give more episodes.")
    first = np.sort(numpy_generator(seed, "tested ways").permutation(first)[:TESTED])
    x, y = states.h_nd[first], states.h_nd[first + lag]
    return _Ways(x, y, SLACK * _energies(lax, x, y) + SLACK * float(np.nanmean(states.cost)))


def _strictest(lax: LeastAction, divided: CellGraph, held: _Ways) -> LeastAction:
    """The energy with the strictest demands that loses few held-out ways. Stricter demands lose more."""
    for graph in (divided, lax.graph):
        kept: LeastAction | None = None
        low, high = 0, len(LEVELS)  # LEVELS[high:] are known to lose few, as far as tested
        while low < high:
            middle = (low + high) // 2
            candidate = LeastAction(graph, LEVELS[middle])
            if held.lost_by(candidate) <= LOST:
                kept, high = candidate, middle
            else:
                low = middle + 1
        if kept is not None:
            return kept
    return lax


def _verdicts(energy: LeastAction, states: StateSequences, cells: Cells, held: _Ways, seed: int) -> tuple[Verdict, ...]:
    graph = energy.graph
    count = len(cells.centres)
    gap = np.linalg.norm(states.h_nd - cells.centres[cells.label], axis=1)
    step = float(graph.length.sum() / graph.steps.sum()) if len(graph.steps) else float("nan")
    shuffled = success_rate(held.cheap_shuffled(energy, numpy_generator(seed, "shuffled ways"))).value
    kind = "the distinct states" if cells.exact else f"clusters of about {len(states.h_nd) // count} states"
    return (
        _informs("cells", count, len(states.h_nd), f"The cells are {kind}."),
        _informs("cell_radius", float(np.median(gap)) / step, len(gap), "Median radius of a cell, in typical steps."),
        _informs(
            "divided_cells",
            float(graph.divided.mean()),
            count,
            "Share of cells that may lie on both sides of a wall. Their visits are not joined.",
        ),
        _informs(
            "evidence_level",
            energy.level,
            len(graph.steps),
            "Least probability that an edge is not due to wrongly assigned states. It is the strictest with which "
            "held-out ways stay cheap.",
        ),
        Verdict.judge(
            "ways_cheap",
            success_rate(held.cheap_with(energy)),
            direction="higher",
            threshold=0.9,
            null=shuffled,
            good="Held-out ways are cheap. The null is that of shuffled ends.",
            bad="Held-out ways are expensive or impossible by this energy: there are too few steps for the number of "
            "places. Give more episodes, or fewer cells (--energy.cells, or cells= in Python).",
        ),
        Verdict.judge(
            "reversed_cheap",
            success_rate(held.cheap_back(energy)),
            direction="lower",
            null=shuffled,
            good="Share of held-out ways that are as cheap backwards. It is 1 if every step can be undone.",
        ),
    )


def _informs(name: str, value: float, n: int, good: str) -> Verdict:
    return Verdict.judge(name, Estimate.exact(value, n), direction="lower", good=good)


@torch.no_grad()
def _energies(energy: LeastAction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    start, end = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y))
    return energy(start, end).numpy()


def _hold_out(experience: Experience, seed: int) -> tuple[Experience, Experience]:
    names = np.unique(experience.episode)
    if len(names) < 2:
        raise InputError("At least two episodes are needed, because some are held out. Give 'episode' for each step.")
    count = max(1, round(HELD * len(names)))
    mask = np.isin(experience.episode, numpy_generator(seed, "held episodes").permutation(names)[:count])
    return _rows(experience, ~mask), _rows(experience, mask)


def _rows(experience: Experience, rows: np.ndarray) -> Experience:
    return replace(
        experience,
        x=experience.x[rows],
        x_next=experience.x_next[rows],
        cost=experience.cost[rows],
        episode=experience.episode[rows],
        z=None,
        z_next=None,
    )
