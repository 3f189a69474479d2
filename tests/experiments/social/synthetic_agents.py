"""Synthetic latents of two agents with a known relation."""

from pathlib import Path

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.core.arrays import write_arrays
from jepatlas.experiments import Result, Trial
from jepatlas.experiments.social.trained_agents import LATENTS, run_agent

GROUPS, EACH, DIM = 24, 10, 8


def side(h: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of one agent: latents `h`, a third of the groups held out, random images and untrained latents."""
    n, group = len(h), np.arange(len(h)) // EACH
    return {
        "h": h,
        "untrained": rng.standard_normal((n, h.shape[1])),
        "raw": rng.standard_normal((n, 6, 6)),
        "ids": np.array([f"s{i:04d}" for i in range(n)]),
        "groups": np.array([f"g{g:02d}" for g in group]),
        "labels": np.where(group % 2, "car", "mug"),
        "held": group % 3 == 0,
    }


def states(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((GROUPS * EACH, DIM))


def rotation(rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]


def synthetic_pair(h_a: np.ndarray, h_b: np.ndarray, rng: np.random.Generator) -> PairedLatents:
    return PairedLatents(Latents("a", **side(h_a, rng)), Latents("b", **side(h_b, rng)))


def agent_result(folder: Path, arrays: dict[str, np.ndarray], view: int) -> Result:
    write_arrays(folder / LATENTS, arrays)
    place = {"scene": "rendered", "view": view, "objective": "ijepa", "shuffle": "none", "width": DIM, "seed": 0}
    return Result(Trial(place, run_agent, {}), folder, "finished", {"verdicts": []})
