"""Two agents' latents, made up: what a pair of agents has in common is given, and measures must find it."""

from pathlib import Path

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.linear import Split
from jepatlas.experiments import Result, Trial
from jepatlas.experiments.social.charts import Met
from jepatlas.experiments.social.runs import LATENTS, run

GROUPS, EACH, DIM = 24, 10, 8


def side(h: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Latents of states in groups, a third of them held out; images and the untrained network say nothing."""
    n, group = len(h), np.arange(len(h)) // EACH
    return {
        "h": h,
        "untrained": rng.standard_normal((n, DIM)),
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


def met(h_a: np.ndarray, h_b: np.ndarray, rng: np.random.Generator) -> Met:
    a, b = side(h_a, rng), side(h_b, rng)
    return Met(a, b, Split(np.flatnonzero(~a["held"]), np.flatnonzero(a["held"])))


def agent_result(folder: Path, arrays: dict[str, np.ndarray], view: int) -> Result:
    write_arrays(folder / LATENTS, arrays)
    place = {"scene": "rendered", "view": view, "objective": "ijepa", "shuffle": "none", "width": DIM, "seed": 0}
    return Result(Trial(place, run, {}), folder, "finished", {"verdicts": []})
