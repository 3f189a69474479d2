"""A small quasimetric head, a small one-way grid, and random walks on it, for training in seconds."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from jepatlas.core.records import Experience, Steps

__all__ = ["MaxSum", "chain", "grid", "random_steps"]


class MaxSum(nn.Module):
    """max over chunks of Σ relu(v − u): a maximum of quasimetrics."""

    guaranteed_quasimetric, pseudo = True, True

    def __init__(self, chunks: int = 1) -> None:
        super().__init__()
        self.chunks = chunks

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (y - x).relu().unflatten(-1, (self.chunks, -1)).sum(-1).amax(-1)


def grid(side: int = 5) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Cells in [−1, 1]², exact energies, and moves to any neighbour except from column 3 back to 2."""
    cells = np.array([(i, j) for i in range(side) for j in range(side)])
    gaps = np.abs(cells[:, None] - cells[None]).sum(-1)
    back = (cells[:, None, 1] == 3) & (cells[None, :, 1] == 2)
    moves = (gaps == 1) & ~back
    truth = shortest_path(moves.astype(float))
    return 2 * cells / (side - 1) - 1.0, truth, list(zip(*np.nonzero(moves), strict=True))


def chain(states: np.ndarray, moves: list[tuple[int, int]], episodes: int, length: int, seed: int = 0) -> Experience:
    """Random walks along the moves, each of cost 1, from uniform starts."""
    rng = np.random.default_rng(seed)
    ways = {i: [b for a, b in moves if a == i] for i in range(len(states))}
    paths = []
    for _ in range(episodes):
        path = [int(rng.integers(len(states)))]
        for _ in range(length):
            path.append(int(rng.choice(ways[path[-1]])))
        paths.append(path)
    index = np.array(paths)
    before, after = index[:, :-1].ravel(), index[:, 1:].ravel()
    return Experience(states[before], states[after], np.ones(len(before)), np.repeat(np.arange(episodes), length))


def random_steps(count: int = 16, dim: int = 4, seed: int = 0) -> Steps:
    generator = torch.Generator().manual_seed(seed)
    x, x_next, goal = torch.randn(3, count, dim, generator=generator)
    return Steps(x, x_next, torch.rand(count, generator=generator), goal)
